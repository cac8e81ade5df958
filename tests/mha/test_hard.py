import numpy as np
import pytest

from attnlab import mha
from attnlab.mha import theory


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 8])
def test_parity_layers_compute_parities(size):
    instance = mha.hard_instance("parity", d=size + 4, size=size, seed=size)
    X, y = instance.task.sample(500)
    assert np.abs(y - instance.closed_form(X)).max() < 1e-12
    assert instance.task.n_heads == size + size % 2
    assert 1 / (1 + instance.beta**2) == pytest.approx(theory.parity_trivial_error(size))


def test_the_secret_free_predictor_has_the_error_stated():
    instance = mha.hard_instance("parity", d=10, size=4)
    X, y = instance.task.sample(40_000)
    tokens = X[:, 0] - X[:, 1]
    free = ((1 - X[:, 0, 0] * X[:, 1, 0]) / 2 * instance.beta)[:, None] * (tokens @ instance.M)
    error = np.sum((y[:, 0] - free) ** 2) / np.sum(y[:, 0] ** 2)
    assert error == pytest.approx(float(theory.parity_trivial_error(4)), rel=0.03)


@pytest.mark.parametrize(("d", "size"), [(12, 5), (16, 6), (20, 8)])
def test_linear_algebra_over_gf2_cracks_the_noiseless_parity(d, size):
    instance = mha.hard_instance("parity", d=d, size=size, seed=1)
    assert mha.gf2_crack(*instance.task.sample(400)) == instance.secret


def test_noise_stops_the_crack():
    instance = mha.hard_instance("parity", d=12, size=5, noise_std=0.1)
    assert mha.gf2_crack(*instance.task.sample(400)) is None


def test_all_projections_cancel_so_the_sign_is_open():
    instance = mha.hard_instance("parity", d=8, size=2)
    assert instance.task.equivalences.flipped


def test_rounding_layers_compute_the_staircase():
    instance = mha.hard_instance("lwr", q=8, p=4, length=2)
    X, y = instance.task.sample(2000)
    # steps of steepness 40 are sharp up to exp(-20)
    assert np.abs(y - instance.closed_form(X)).max() < 1e-7
    u = instance.inner_products(X)
    assert set(np.unique(u)) <= set(range(int(u.max()) + 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "partiy"}, "did you mean 'parity'"),
        ({"kind": "parity", "d": 5, "size": 5}, "size must be"),
        ({"kind": "lwr", "q": 6}, "power of two"),
        ({"kind": "lwr", "q": 4, "p": 8}, "p must be"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        mha.hard_instance(**arguments)
