"""Settings shared by all tests; array shapes in the annotations of attnlab are checked by beartype."""

import os

import pytest
from jaxtyping import install_import_hook

# One BLAS thread per test process: the suite runs as many processes as there are cores.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

install_import_hook("attnlab", "shapes.check")


@pytest.fixture(params=[0], ids=["seed0"])
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of a statistical test; its tolerance must hold for any value."""
    return int(request.param)
