"""The kernels of OpenBLAS are named on processors that it does not know, before NumPy loads, and nowhere else."""

import os
import subprocess
import sys

import pytest

from attnlab.cli.blas_kernels import INSTRUCTIONS, NAME, WIDE, set_kernels, withdraw


def processor(vendor, family, flags):
    return f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nflags\t\t: fpu {' '.join(flags)}\n\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (processor("AuthenticAMD", 26, INSTRUCTIONS), True),
        (processor("AuthenticAMD", 25, INSTRUCTIONS), False),
        (processor("AuthenticAMD", 26, INSTRUCTIONS - {"avx512vl"}), False),
        (processor("GenuineIntel", 26, INSTRUCTIONS), False),
        ("", False),
    ],
)
def test_only_an_unknown_processor_with_the_instructions_gets_a_name(text, named, tmp_path, monkeypatch):
    monkeypatch.setenv(NAME, "")
    monkeypatch.delenv(NAME)
    (tmp_path / "cpuinfo").write_text(2 * text)
    set_kernels(tmp_path / "cpuinfo")
    assert (os.environ.get(NAME) == WIDE) == named
    withdraw()
    assert NAME not in os.environ


def test_the_user_s_choice_stays_and_a_machine_without_the_file_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv(NAME, "Haswell")
    (tmp_path / "cpuinfo").write_text(processor("AuthenticAMD", 26, INSTRUCTIONS))
    set_kernels(tmp_path / "cpuinfo")
    withdraw()
    assert os.environ[NAME] == "Haswell"
    set_kernels(tmp_path / "missing")
    assert os.environ[NAME] == "Haswell"


def test_the_command_line_loads_no_numpy_before_it_could_be_said():
    program = "import attnlab.cli, sys; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
