"""Products of `toy_wgmma` on the stages of a ring: those of `wgmma`."""

from __future__ import annotations

from mlirfuse.tiling.contractions.families.wgmma import WgmmaPipelining

STRATEGY = WgmmaPipelining()
