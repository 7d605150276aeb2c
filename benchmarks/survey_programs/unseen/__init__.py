"""Programs that were written after the compiler, to see what it does with functions that nothing was tuned for."""
