"""Arguments and results of calls: arrays of every library, their concrete shapes, and checks of results."""
