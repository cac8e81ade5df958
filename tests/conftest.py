"""Settings shared by all tests; array shapes in the annotations of attnlab are checked by beartype."""

import hashlib
import os

import pytest
from jaxtyping import install_import_hook

# One BLAS thread per test process: the suite runs as many processes as there are cores.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

install_import_hook("attnlab", "shapes.check")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order-by", default="", help="run the tests in an order that depends on this word alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No test may depend on its neighbours; a word, such as a commit, chooses another order."""
    if word := config.getoption("--order-by"):
        items.sort(key=lambda item: hashlib.sha256(f"{word} {item.nodeid}".encode()).digest())


@pytest.fixture
def seed() -> int:
    """The seed of a statistical test, whose tolerance must hold for any value: ATTNLAB_TEST_SEED chooses it."""
    return int(os.environ.get("ATTNLAB_TEST_SEED", "0"))
