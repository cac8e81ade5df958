import pytest

from attnlab.rfa import Task


@pytest.fixture(scope="module")
def data():
    return Task(d=4, n_keys=3).sample(120, seed=1)
