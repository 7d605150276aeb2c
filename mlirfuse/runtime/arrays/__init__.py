"""What callers pass and get: arrays of every library, concrete shapes, results and checks of these."""
