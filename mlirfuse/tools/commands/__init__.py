"""The subcommands of `mlirfuse`, a module each, and what they share: specs, tables, finding the user's function."""
