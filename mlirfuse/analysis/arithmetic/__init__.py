"""What scalar code computes: casts, roundings, products that go into sums, bodies of reductions."""
