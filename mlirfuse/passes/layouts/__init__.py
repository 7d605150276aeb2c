"""Passes on tile programs that place values: layouts of tiles, and values kept in registers or shared memory."""
