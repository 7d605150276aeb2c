"""Rules of contractions: by scalar multiply-adds, by `mma.sync`, and by warpgroups in warp roles."""
