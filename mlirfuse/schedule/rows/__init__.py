"""Schedules of rows that a block or a cluster holds or streams."""
