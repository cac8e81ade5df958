"""The kernels that OpenBLAS takes on processors which it does not know."""

from __future__ import annotations

import os
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
# AMD's Zen 5.
UNKNOWN = {("AuthenticAMD", "26")}
NEEDED = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def environment(cpuinfo: Path = CPUINFO) -> dict[str, str]:
    """What a process must find in its environment before it imports NumPy; nothing where OpenBLAS chooses well.

    OpenBLAS up to 0.3.31 takes kernels of half the vector width on Zen 5 (OpenBLAS issue 6029), and matrix products
    take twice the time. Those of Skylake-X need no more than these processors have.
    """
    try:
        text = "" if "OPENBLAS_CORETYPE" in os.environ else cpuinfo.read_text().partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    one = {name.strip(): value.strip() for name, _, value in pairs}
    known = (one.get("vendor_id"), one.get("cpu family")) not in UNKNOWN
    return {} if known or not set(one.get("flags", "").split()) >= NEEDED else {"OPENBLAS_CORETYPE": "SkylakeX"}
