"""A small planted layer and examples of it, shared by the tests of the learners."""

import pytest

from attnlab import mha


@pytest.fixture(scope="module")
def task():
    return mha.Task(d=4, k=3, n_heads=2, rho=2.0, seed=1)


@pytest.fixture(scope="module")
def examples(task):
    return task.sample(600, seed=2)
