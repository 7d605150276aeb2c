"""The commands: `mlirfuse-opt` runs passes on IR, `mlirfuse` compiles, explains and runs functions."""
