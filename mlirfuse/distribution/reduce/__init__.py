"""Rules of reductions: of one value, of moments, of sums of exponentials; and how many elements each warp holds."""
