"""Passes on tile programs that say where values are: layouts of tiles, and what waits in registers or shared memory."""
