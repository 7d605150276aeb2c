"""The state of a running kernel: values and their types, memory with its shadow, clocks, and copies in flight."""
