"""Rules of reductions: of one value, of moments, of sums of exponentials; and the number of elements that each warp
holds.
"""
