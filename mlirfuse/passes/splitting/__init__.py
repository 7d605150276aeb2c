"""Passes that split one tensor kernel into two, one of which reduces and one of which uses or combines the results."""
