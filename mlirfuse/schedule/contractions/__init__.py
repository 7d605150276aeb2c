"""Schedules of contractions: tiles, candidates, their cost, and the choice."""
