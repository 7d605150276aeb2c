"""The pass that makes products of groups one product where that is faster, and its parts."""
