"""Schedules and layouts as data: what they mean, when they are legal, and how one is chosen. Nothing here sees IR."""
