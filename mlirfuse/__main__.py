"""`python -m mlirfuse`: the `mlirfuse` command."""

from __future__ import annotations

import sys

from mlirfuse.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
