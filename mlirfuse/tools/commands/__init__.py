"""The subcommands of `mlirfuse`, a module each, and their helpers: specs, tables, finding the user's function."""
