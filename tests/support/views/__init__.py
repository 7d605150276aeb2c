"""Functions of arrays in every order in memory, with references, for the interpreter's and the GPU's tests."""
