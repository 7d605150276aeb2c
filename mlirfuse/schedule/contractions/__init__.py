"""Schedules of contractions: families of instructions, candidates, checks, their cost, and the choice."""
