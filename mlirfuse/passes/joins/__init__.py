"""Joined, padded and stacked arrays: flattened, divided, and stored part by part."""
