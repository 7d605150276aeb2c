"""Stand-ins for what a test has not: a driver, a GPU, a compiler that fails."""
