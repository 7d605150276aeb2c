"""Schedules of reductions that the blocks of a grid share."""
