import pytest

from benchmarks import gpu_rfa


@pytest.mark.parametrize("kind", ["rfa", "brfa"])
def test_the_tile_that_is_timed_is_the_kernel(kind):
    row = gpu_rfa.exact_kernel(kind, gpu_rfa.TINY, 1e12)
    # rounding of float32
    assert float(row.detail.partition("error ")[2].split()[0]) < 1e-6
