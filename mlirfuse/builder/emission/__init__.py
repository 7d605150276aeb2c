"""Building linalg ops: bodies of scalars, whole ops, and the operands and dtypes of elementwise functions."""
