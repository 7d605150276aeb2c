"""Rules of contractions: on scalar units, by `mma.sync`, and by warpgroups in roles."""
