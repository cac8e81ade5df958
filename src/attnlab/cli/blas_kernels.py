"""Which kernels OpenBLAS takes, on processors that it does not know.

Up to version 0.3.31 it runs AMD's family 26 (Zen 5) with the AVX2 kernels of Haswell, at half the rate of those with
AVX-512 in float32 and two thirds in float64. The environment is its only door, and it reads it once, when NumPy loads.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

NAME, WIDE = "OPENBLAS_CORETYPE", "SkylakeX"
# What the kernels of WIDE use: a processor without one of these would stop at the first product.
INSTRUCTIONS = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "fma"}
FIRST_UNKNOWN_FAMILY = 26


def set_kernels(description: Path = Path("/proc/cpuinfo")) -> None:
    """Name the wide kernels where they are missed; the user's own choice stays."""
    try:
        # The first of many equal processors.
        processor = description.read_text().split("\n\n")[0]
    except OSError:
        return
    family = re.search(r"^cpu family\s*:\s*(\d+)", processor, re.MULTILINE)
    known = "AuthenticAMD" not in processor or family is None or int(family[1]) < FIRST_UNKNOWN_FAMILY
    if not known and set(processor.split()) >= INSTRUCTIONS:
        os.environ.setdefault(NAME, WIDE)


def withdraw() -> None:
    """Processors of other machines, whose jobs inherit this environment, may lack the instructions."""
    if os.environ.get(NAME) == WIDE:
        del os.environ[NAME]
