"""Choosing a schedule: all families' candidates, their predicted times, records of tuning, choices after spills."""
