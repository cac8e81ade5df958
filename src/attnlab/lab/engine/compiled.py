"""Compiled programs that are kept from run to run, in a folder of the user's.

JAX finds a program again by its text, its options and the versions of the compiler. The folder carries the
processor's name and abilities too: a home directory may be seen from machines whose code is another's. Only processes
of this machine use it, never those of a cluster. A damaged entry is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

from attnlab.common.cache import home, tidy

# ATTNLAB_COMPILED=off compiles everything anew; JAX_COMPILATION_CACHE_DIR, where it is set, is left as it is.
SWITCH = "ATTNLAB_COMPILED"
# Bytes that are kept; the programs that were written first go first.
LIMIT = 512 * 2**20
# Programs compiled in less time (in seconds) are not worth a file.
SHORTEST = 0.2


def environment() -> dict[str, str]:
    """What a process of this machine must find in its environment before it imports JAX; nothing if switched off."""
    if os.environ.get(SWITCH, "").lower() in ("off", "0", "no") or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return {}
    try:
        kept = folder()
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        if kept.stat().st_uid != os.getuid():  # what lies there is executed
            return {}
        tidy(kept, LIMIT)
    except OSError:  # a home that cannot be written
        return {}
    return {
        "JAX_COMPILATION_CACHE_DIR": str(kept),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": str(SHORTEST),
    }


def folder() -> Path:
    """Where the programs of this processor are."""
    return home() / "compiled" / processor()


def processor() -> str:
    """A short name of this machine's instructions."""
    text = f"{platform.machine()} {platform.processor()}"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        text += "".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    except OSError:
        pass
    return hashlib.sha256(text.encode()).hexdigest()[:16]
