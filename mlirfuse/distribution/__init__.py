"""From whole-tile vectors to one thread's code: the machinery of the `fuse-distribute` pass.

`fragments` says what a thread holds, `threads` where it stands in the tile, and one rule an op (`transfers`,
`elementwise`, `reductions`, `moments`, ...) says what it does. Rules look at layouts, never at where an op came from.
"""
