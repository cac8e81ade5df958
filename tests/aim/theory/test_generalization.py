import numpy as np
import pytest

from attnlab.aim import theory
from attnlab.aim.channels import Hardmax, Linear, Softmax
from attnlab.aim.indices import unwhiten


@pytest.mark.parametrize(
    ("error", "bayes", "plug_in"),
    [(1, 0.28682, 0.30215), (0.72368, 0.21337, 0.22418), (0.39220, 0.12085, 0.12512), (0.12813, 0.04141, 0.04199)],
)
def test_two_softmax_tokens_have_their_reference_values(error, bayes, plug_in):
    assert theory.generalization_error(error, 0.5) == pytest.approx(bayes, abs=2e-5)
    assert theory.generalization_error(error, 0.5, predictor="plug-in") == pytest.approx(plug_in, abs=2e-5)


@pytest.mark.parametrize(
    ("error", "bayes", "plug_in"),
    [
        (1, 0.641668, 0.865750),
        (0.72368, 0.516163, 0.677949),
        (0.39220, 0.342004, 0.430430),
        (0.12813, 0.154416, 0.180756),
    ],
)
def test_sharp_softmax_has_its_reference_values(error, bayes, plug_in):
    # trapezoid rule with 1201 x 4001 nodes over ten deviations; 80 x 80 Gauss-Hermite nodes do not resolve beta = 5
    # (plug-in 0.8669 and 0.1881 at the ends)
    assert theory.generalization_error(error, 0.5, beta=5.0) == pytest.approx(bayes, abs=1e-6)
    assert theory.generalization_error(error, 0.5, beta=5.0, predictor="plug-in") == pytest.approx(plug_in, abs=1e-6)


def test_three_tokens_have_their_reference_values():
    assert theory.generalization_error(0.3922, 0.5, 3) == pytest.approx(0.201, abs=2e-3)
    assert theory.generalization_error(0.3922, 0.5, 3, predictor="plug-in") == pytest.approx(0.207, abs=2e-3)


@pytest.mark.parametrize("law", [Softmax(5.0), Softmax(2.0, noise=0.3), Hardmax(), Hardmax(noise=0.2)], ids=str)
@pytest.mark.parametrize("predictor", ["bayes", "plug-in"])
def test_two_tokens_agree_with_simulation(law, predictor, seed):
    V, Q, n = 0.4, 1.5, 200_000
    rng = np.random.default_rng(seed)
    omega = np.sqrt(Q - V) * rng.standard_normal((n, 3))
    spread = np.sqrt(V + law.noise)
    first, second = (law.output(unwhiten(omega + spread * rng.standard_normal((n, 3)), 2)) for _ in range(2))
    # two replicas: half the squared difference is the Bayes error
    other, factor = (second, 0.5) if predictor == "bayes" else (law.output(unwhiten(omega, 2)), 1.0)
    losses = factor * ((first - other) ** 2).sum(axis=(1, 2))
    expected = theory.generalization_error(V, 0.5, channel=law, predictor=predictor)
    assert abs(losses.mean() - expected) < 4 * losses.std() / np.sqrt(n)


def test_linear_outputs_have_the_error_of_the_indices():
    assert float(theory.generalization_error(0.4, 0.5, 2, "linear")) == pytest.approx(0.4 * 6)
    noisy = theory.generalization_error(0.4, 0.5, 2, Linear(noise=0.1))
    assert float(noisy) == pytest.approx((0.4 + 0.1) * 6)
