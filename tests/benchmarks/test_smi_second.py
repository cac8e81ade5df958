"""Values that had one computation, against plain NumPy (benchmarks.smi_second) or another identity."""

import numpy as np
import pytest

from attnlab.smi import links, theory
from attnlab.smi.posterior.moments import first_rule
from attnlab.smi.theory.gains import gain, points_of
from attnlab.smi.theory.iteration import step
from benchmarks import smi_second


def test_the_branch_of_the_second_layer_by_polar_nodes():
    alpha, error = smi_second.layers(0.0, 0.5, 2**13)["alpha_2"]
    found = theory.curve("deep_attention", 0.5, [0, 1], draws=2**9)
    assert abs(float(found) - alpha) < 3 * np.hypot(error, found.error)


@pytest.mark.slow
@pytest.mark.parametrize(("skip", "overlaps"), [(1.0, (0.97, 0.98)), (2.0, (0.985, 0.99))])
def test_the_threshold_of_the_first_layer_by_polar_nodes(skip, overlaps):
    alpha, error = smi_second.layer_1_threshold(skip, 2**15, overlaps)
    assert error < 0.01
    assert abs(alpha - 0.72) < 3 * error + 0.004  # the error of the reference


def test_specialisation_of_the_erf_committee_by_quadrature():
    """Without draws: 5.7212, where one had 5.7(1); and q_+ at alpha = 4."""
    assert np.prod(smi_second.committee(0.93389)) == pytest.approx(1, abs=1e-4)
    assert smi_second.committee(0.93389)[0] == pytest.approx(5.7212, abs=1e-3)
    assert smi_second.committee(0.9014)[0] == pytest.approx(4, abs=0.05)


@pytest.mark.slow
def test_the_committee_on_the_grid():
    found = theory.thresholds("committee")
    assert abs(found[1] - 5.7212) < 3 * found.error[1]
    along = theory.curve("committee", 0.93389, [1, 1])
    assert abs(float(along) - 5.7212) < 3 * along.error


def test_generalization_is_half_the_distance_of_two_outputs():
    for Q in ((0.0, 0.8), (0.572, 0.9945)):
        drawn = smi_second.generalization(*Q, 2**15)
        for predictor, (value, error) in drawn.items():
            found = theory.generalization_error("deep_attention", np.diag(Q), predictor=predictor)
            assert abs(float(found) - value) < 4 * np.hypot(error, found.error)


@pytest.mark.parametrize(
    ("link", "basis"),
    [(links.sign_committee(), np.array([[1, 1], [1, -1]]) / np.sqrt(2)), (links.deep_attention(), np.eye(2)[::-1])],
    ids=["sign_committee", "deep_attention"],
)
def test_a_cross_block_cannot_grow_first(link, basis):
    """A small overlap of a learned with an unlearned direction: its factor is at most sqrt(alpha lambda)."""
    (u, v), q, small = basis, 0.5, 1e-3
    points = points_of(link, 2**9, 8, "cross")

    def map_of(Q, alpha=None):
        V = np.repeat((np.eye(2) - Q)[None], 8, axis=0)
        S = gain(link, V, points, first_rule(link)).product
        alpha = alpha or q / np.einsum("a,kab,b->k", u, S, u).mean()
        return alpha, (np.eye(2) - step(V, S, alpha)).mean(axis=0)

    along = q * np.outer(u, u)
    alpha, base = map_of(along)
    _, crossed = map_of(along + small * (np.outer(u, v) + np.outer(v, u)), alpha)
    _, grown = map_of(along + small * np.outer(v, v), alpha)
    assert u @ base @ u == pytest.approx(q, abs=1e-3)
    cross, rest = u @ (crossed - base) @ v / small, v @ (grown - base) @ v / small
    assert 0 <= cross < np.sqrt(rest) + 0.02  # the map is not linear beyond small
