"""The shipped layers are what the learners find today, on a sample."""

import numpy as np
import pytest

from attnlab.mha import explorer
from attnlab.mha.explorer import precompute
from attnlab.mha.theory import examples_needed


@pytest.fixture(scope="module")
def layers():
    return explorer.tables()["fitted"]["layers"]


def layer(layers, m, rho):
    return next(x for x in layers if (x["m"], x["rho"]) == (m, rho))


def test_a_recovered_layer_attends_as_planted(layers):
    for found in layers:
        for fit in found["fits"]:
            if fit["recovered"]:
                # recovered means a relative error of the matrices below 1e-3; weights move by at most rho times that
                np.testing.assert_allclose(fit["found"], found["planted"], atol=5e-3)


def test_no_fit_has_fewer_examples_than_counting_asks_for(layers):
    for found in layers:
        assert found["fits"][0]["n"] >= examples_needed(found["m"], precompute.LAYER["d"], precompute.LAYER["k"])
        assert found["fits"][-1]["recovered"]


def test_a_fit_is_reproduced(layers):
    stored = next(fit for fit in layer(layers, 2, 4.0)["fits"] if fit["n"] == 24)
    again = precompute.fit(2, 4.0, 24)
    assert again["recovered"] == stored["recovered"] is True
    np.testing.assert_allclose(again["found"], stored["found"], atol=1e-6)
