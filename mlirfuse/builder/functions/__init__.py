"""The public functions of tensors, such as `sum` and `reshape`, which check their arguments and emit linalg ops."""
