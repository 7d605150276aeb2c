"""Making random programs: which operations, shapes, dtypes and options."""
