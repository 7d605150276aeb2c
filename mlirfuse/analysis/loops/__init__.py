"""The loops of structured ops and of whole kernels: maps, extents, order, and which loops are one dimension."""
