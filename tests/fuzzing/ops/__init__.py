"""The operations that random programs are made of, each with its reference and its error bound."""
