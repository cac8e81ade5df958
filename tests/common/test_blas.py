import os
import subprocess
import sys

import pytest

from attnlab.common import blas

WIDE = "avx2 avx512f avx512dq avx512cd avx512bw avx512vl"
ZEN5 = ("AuthenticAMD", "26", WIDE)


def environment(folder, processor):
    vendor, family, flags = processor
    one = f"vendor_id\t: {vendor}\ncpu family\t: {family}\nflags\t\t: fpu {flags}\n"
    (folder / "cpuinfo").write_text(one + "\n" + one)
    return blas.environment(folder / "cpuinfo")


def test_a_processor_that_openblas_does_not_know_gets_kernels_of_its_width(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    assert environment(tmp_path, ZEN5) == {"OPENBLAS_CORETYPE": "SkylakeX"}


@pytest.mark.parametrize(
    "processor", [("GenuineIntel", "6", WIDE), ("AuthenticAMD", "25", WIDE), ("AuthenticAMD", "26", "avx2 avx512f")]
)
def test_others_are_left_to_openblas(tmp_path, monkeypatch, processor):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    assert environment(tmp_path, processor) == {}
    assert blas.environment(tmp_path / "absent") == {}


def test_a_choice_that_was_made_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert environment(tmp_path, ZEN5) == {}


def test_the_command_line_chooses_before_numpy_is_loaded():
    code = "import sys, attnlab.cli, attnlab.common.blas; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0
