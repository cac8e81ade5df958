"""Settings shared by all tests; array shapes in the annotations of attnlab are checked by beartype."""

import hashlib
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest

# One BLAS thread per test process: the suite runs as many processes as there are cores.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Programs that took JAX long to compile are kept for the next run, and shared with subprocesses; no test depends on it.
COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "compiled"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(COMPILED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

jaxtyping.install_import_hook("attnlab", "shapes.check")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order-by", default="", help="run the tests in an order that depends on this word alone")
    parser.addoption("--seconds", type=float, default=math.inf, help="start no test later than this after the first")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No test may depend on its neighbours; a word, such as a commit, chooses another order."""
    if word := config.getoption("--order-by"):
        items.sort(key=lambda item: hashlib.sha256(f"{word} {item.nodeid}".encode()).digest())


STARTED = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Stopping a run from outside can hide a failure; a run that stops by itself still says what failed."""
    started = item.session.stash.setdefault(STARTED, time.monotonic())
    if time.monotonic() - started > item.config.getoption("--seconds"):
        pytest.skip("no time left")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep no more compiled programs than a command would; workers of xdist leave that to the process above them."""
    from attnlab.common.cache import tidy
    from attnlab.lab.engine.compiled import LIMIT

    if COMPILED.exists() and not hasattr(session.config, "workerinput"):
        tidy(COMPILED, LIMIT)


@pytest.fixture(autouse=True)
def shapes_are_checked_where_it_is_cheap(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks of a million calls of small functions take four fifths of some slow tests; the fast ones check all."""
    jaxtyping.config.update("jaxtyping_disable", request.node.get_closest_marker("slow") is not None)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def seed() -> int:
    """The seed of a statistical test, whose tolerance must hold for any value: ATTNLAB_TEST_SEED chooses it."""
    return int(os.environ.get("ATTNLAB_TEST_SEED", "0"))
