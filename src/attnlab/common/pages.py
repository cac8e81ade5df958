"""Memory that a process has freed stays with it.

By default glibc returns a freed array of more than some megabytes to the system, and the next array of that size begins
with pages that the system must clear: in a virtual machine 0.25 ns a byte, more than many cells spend on filling it.
"""

from __future__ import annotations

import ctypes
import functools

# glibc's mallopt(3): arrays up to BLOCK bytes lie in the heap, which keeps up to REST unused bytes at its end.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
BLOCK, REST = 256 * 2**20, 512 * 2**20


@functools.cache
def keep_pages() -> bool:
    """Set it, for processes that are attnlab's own; whether the system's C library has such a setting."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return False
    return bool(set_option(MMAP_THRESHOLD, BLOCK)) and bool(set_option(TRIM_THRESHOLD, REST))
