"""Passes that load ahead: rings of stages, copies in the background, prefetches, peeled loops."""
