"""Contractions with references and schedules, for the interpreter's and the GPU's tests."""
