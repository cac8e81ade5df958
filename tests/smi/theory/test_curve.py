"""The scalar branch alpha(q) against independent values."""

import numpy as np
import pytest

from attnlab.smi import theory


@pytest.mark.parametrize(
    ("link", "q", "alpha"),
    [
        # Quadrature and Monte Carlo of E g^2, independent of this package.
        ("phase_retrieval", 0.8466, 1.12847),
        ("phase_retrieval", 1 - 1e-6, 1.0006),
        ("attention", 0.268, 0.3),
        ("attention", 0.592, 0.4),
        ("attention", 1 - 1e-6, 0.5),
        ("sign", 0.728298, 2.0),
    ],
)
def test_one_direction(link, q, alpha):
    found = theory.curve(link, q)
    assert found.converged
    assert abs(float(found) - alpha) < 3 * found.error + 5e-4


@pytest.mark.parametrize(("q", "alpha"), [(0.479897, 1.0), (0.703517, 2.0)])
def test_unspecialised_committee(q, alpha):
    # Quadrature; the public data of arXiv:1806.05451 have 0.47990 and 0.70352.
    found = theory.curve("sign_committee", q, [1, 1])
    assert abs(float(found) - alpha) < 3 * found.error + 2e-3 * alpha


@pytest.mark.slow
def test_second_layer_while_the_first_is_unknown():
    found = theory.curve("deep_attention", [0.2, 0.5, 0.8, 0.9], [0, 1], replicates=4)
    error = np.hypot(found.error, [5e-4, 6e-4, 4e-4, 2e-3])
    assert (np.abs(found - [0.2965, 0.4042, 0.5122, 0.573]) < 3 * error).all()


def test_a_coarse_grid_is_reported():
    with pytest.warns(UserWarning, match="not resolved"):
        found = theory.curve("deep_attention(skip=0.0001)", 0.2, [0, 1], nodes=41, replicates=4)
    assert not found.converged
    assert np.isnan(float(found))


def test_a_direction_that_state_evolution_leaves_is_reported():
    with pytest.warns(UserWarning, match="not a branch"):
        found = theory.curve("sign_committee", [0.3], [1, 0], draws=2**9)
    assert not found.converged


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("attention", 1.0), "overlaps in \\(0, 1\\)"),
        (("attention", [0.2, 0.0]), "overlaps in \\(0, 1\\)"),
        (("sign_committee", 0.3), "direction must be a vector of length 2"),
        (("sign_committee", 0.3, [0, 0]), "not zero"),
        (("sign_committee", 0.3, [1, 0, 0]), "vector of length 2"),
    ],
)
def test_bad_input_is_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        theory.curve(*arguments)
