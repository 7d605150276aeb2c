"""What a running kernel's ops see: values and their types, memory with its shadow, clocks, and copies under way."""
