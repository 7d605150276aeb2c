"""The programs of `benchmarks/survey.py`: formulas by domain, the table of their sizes, and random ones."""
