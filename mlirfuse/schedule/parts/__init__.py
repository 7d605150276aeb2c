"""The parts of a schedule that some kernels add: contractions, transposed arrays, loops over a grid."""
