"""Questions about kernels that passes ask before they rewrite: structure, iteration spaces, segments, problems."""
