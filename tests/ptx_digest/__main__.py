"""`python -m tests.ptx_digest`: digests of the PTX of all cases, and what differs between two of them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> int:
    """Runs the command; 1 where digests differ."""
    options = _options()
    if options.tree:
        sys.path.insert(0, str(options.tree.resolve()))
    from tests.ptx_digest import command  # imports mlirfuse, of the tree that --tree names

    return command.run(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.ptx_digest", description=__doc__)
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="where to write the digests")
    parser.add_argument("--resume", action="store_true", help="compile only the cases that are not in FILE.json")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that compile")
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="PATTERN", help="cases of these names, such as 'rows-*'"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cases, and stop")
    parser.add_argument(
        "--dump", type=Path, metavar="DIR", help="write the normalised PTX there, for other tools to compare"
    )
    parser.add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=("BEFORE.json", "AFTER.json"),
        help="print what differs; compile nothing",
    )
    parser.add_argument(
        "--tree", type=Path, metavar="DIR", help="digest the mlirfuse of that checkout, not of this one"
    )
    options = parser.parse_args()
    if options.tree and not (options.tree / "mlirfuse" / "__init__.py").exists():
        parser.error(f"--tree {options.tree} has no mlirfuse/__init__.py")
    if options.resume and not options.out:
        parser.error("--resume needs --out")
    return options


if __name__ == "__main__":
    sys.exit(main())
