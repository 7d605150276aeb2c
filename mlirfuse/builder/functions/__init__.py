"""The public functions of tensors, such as `sum` and `reshape`, by kind. Each checks its arguments and emits linalg."""
