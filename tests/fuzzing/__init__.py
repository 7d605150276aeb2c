"""Random programs over the whole language, run by mlirfuse and checked against NumPy with an error bound a value.

`python -m tests.fuzzing --help` runs any number of them; CONTRIBUTING.md has a section.
"""
