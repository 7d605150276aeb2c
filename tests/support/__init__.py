"""What tests share, imported as `tests.support.x`: harnesses, stand-ins, and functions with references."""
