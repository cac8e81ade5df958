import subprocess
import sys

import pytest

from attnlab.common import pages

COUNT = """
import resource, sys
import numpy as np
from attnlab.common.pages import keep_pages
if sys.argv[1] == "kept":
    assert keep_pages()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(10_000_000).fill(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(min(faults() for _ in range(3)))
"""


@pytest.mark.skipif(not pages.keep_pages(), reason="the C library has no such setting")
def test_an_array_gets_the_pages_of_the_one_before():
    def fresh(how):
        run = subprocess.run([sys.executable, "-c", COUNT, how], check=True, capture_output=True, text=True)
        return int(run.stdout)

    # 80 MB: 19 532 pages of 4 kB, or 39 of 2 MB
    assert fresh("given back") >= 39
    assert fresh("kept") == 0


def test_another_c_library_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(pages.ctypes, "CDLL", lambda name: object())
    assert not pages.keep_pages.__wrapped__()
