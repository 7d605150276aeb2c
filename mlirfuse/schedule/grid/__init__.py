"""Schedules of reductions that a whole grid works on: candidates, their cost, second stages, the choice."""
