"""Assembled kernels, kept in files on disk, so that a program's second run assembles nothing.

The directory is `cubins` in the user's cache directory, or the directory that `MLIRFUSE_CACHE` names; `off` disables
the cache. An entry is one file, whose name is the digest of all inputs, and whose first 32 bytes are the SHA-256 of the
rest: a truncated or overwritten entry is assembled again. The directory may be deleted at any time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import get_ident

from mlirfuse.support.user_cache import cache_path

VARIABLE = "MLIRFUSE_CACHE"

LARGEST = 1 << 30
"""Approximate limit of all entries, bytes; beyond it the oldest entries are deleted until half is left."""

_PRUNING = "00"
"""Storing an entry whose name starts with this prefix (one in 256) checks the size of the cache."""

_DIGEST_BYTES = 32
_FORMAT = "1"


def directory() -> Path | None:
    """The directory of the entries; None where the cache is off."""
    return cache_path(VARIABLE, "cubins")


def digest(*parts: str) -> str:
    """The name of the entry that is made from these texts."""
    lengths = ",".join(str(len(part)) for part in parts)
    return sha256("\0".join([_FORMAT, lengths, *parts]).encode()).hexdigest()


def lookup(name: str) -> bytes | None:
    """The content of an entry, or None."""
    folder = directory()
    if folder is None:
        return None
    try:
        content = (folder / name).read_bytes()
    except OSError:
        return None
    checksum, payload = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return payload if sha256(payload).digest() == checksum else None


def store(name: str, payload: bytes) -> None:
    """Adds an entry; other processes may do so at the same time. Where the directory cannot be written none is kept."""
    folder = directory()
    if folder is None:
        return
    part = folder / f"{name}.{os.getpid()}.{get_ident()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(sha256(payload).digest() + payload)
        part.replace(folder / name)  # whole or not at all, without a lock: both writers write the same
        if name.startswith(_PRUNING):
            _prune(folder)
    except OSError:
        with suppress(OSError):
            part.unlink()


def _prune(folder: Path) -> None:
    with os.scandir(folder) as entries:
        files = [(entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries]
    total = sum(size for _, size, _ in files)
    if total <= LARGEST:
        return
    for _, size, path in sorted(files):
        with suppress(OSError):  # another process may have deleted it
            os.unlink(path)
        total -= size
        if total <= LARGEST // 2:
            return
