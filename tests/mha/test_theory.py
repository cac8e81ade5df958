from itertools import product

import numpy as np
import pytest

from attnlab import mha
from attnlab.mha import theory
from attnlab.mha.engine.levenberg_marquardt import levenberg_marquardt
from attnlab.mha.layer import rows_of


def test_logit_moments_on_the_whole_cube():
    theta = np.random.default_rng(0).standard_normal((3, 3))
    cube = np.array(list(product([-1, 1], repeat=3)))
    between, own = cube @ theta @ cube.T, np.einsum("np,pq,nq->n", cube, theta, cube)
    task = mha.Task(d=3, k=2, n_heads=1, planted=(theta[None], np.eye(3)[None]))
    assert theory.logit_moments(task)[0] == pytest.approx((between.var(), own.mean(), own.var()))


@pytest.mark.parametrize(("m", "k"), [(2, 2), (2, 3), (3, 2)])
def test_agreement_probability_against_simulation(m, k):
    rho, delta = 4.0, 0.4
    rng = np.random.default_rng(m * k)
    logits = rho * rng.standard_normal((400_000, m, k))
    odds = logits[:, :, 1:] - logits[:, :, :1]
    seen = np.mean(np.abs(odds[:, 1:] - odds[:, :1]).max(axis=(1, 2)) < delta)
    # four standard errors, and the curvature of the density at delta / rho = 0.1
    assert seen == pytest.approx(
        float(theory.agreement_probability(delta, m, k, rho)), rel=4 / np.sqrt(4e5 * seen) + 0.02
    )


def test_agreement_on_a_real_layer_has_the_predicted_probability():
    m, rho, delta = 2, 4.0, 0.3
    task = mha.Task(d=40, k=3, n_heads=m, rho=rho)
    X = task.tokens_of(60_000)
    odds = np.stack([np.einsum("np,np->n", X[:, 0] @ theta, X[:, 1] - X[:, 2]) for theta in task.Theta])
    seen = np.mean(np.abs(odds[0] - odds[1]) < delta)
    # two keys other than the query; a finite layer's heads are not exactly incoherent: 1/d = 2.5 % each
    assert seen == pytest.approx(
        float(theory.agreement_probability(delta, m, 2, rho)), rel=4 / np.sqrt(6e4 * seen) + 0.08
    )


def test_counting_limits():
    assert theory.unknowns(2, 8) == 256
    assert theory.examples_needed(2, 8, 4) == 8
    # at two tokens a row says one number about each head: n k (k - 1) >= d^2
    assert theory.examples_needed(1, 30, 2) == 450


def test_the_information_bound_is_met_by_least_squares():
    task = mha.Task(d=4, k=3, n_heads=2, noise_std=0.05, rho=2.0)
    clean = mha.Task(d=4, k=3, n_heads=2, rho=2.0)
    X, _ = clean.sample(300, seed=0)
    bound = theory.cramer_rao(task, X).value
    errors = []
    for repeat in range(40):
        noise = 0.05 * np.random.default_rng((repeat, 5)).standard_normal((300, 3, 4))
        rows = rows_of(X, clean.sample(300, seed=0)[1] + noise)
        fit = levenberg_marquardt(rows, task.Theta, max_iter=6)
        errors.append(np.linalg.norm(fit.theta - task.Theta, axis=(1, 2)) / 2.0)
    rms = np.sqrt(np.mean(np.square(errors), axis=0))
    # 40 repeats of a sum of 16 squares: 4 standard errors are 4 / sqrt(2 * 16 * 40) = 11 %; and a few rows of the
    # small cube are copies, which count once
    assert rms == pytest.approx(bound, rel=0.25)


def test_step_flops_name_the_saving():
    flops = theory.step_flops(4000, n_heads=2, d=16, k=4).detail
    # 2 d / 3 to leading order; the diagonals of the packed pairs add about 1/d
    assert flops["direct"] / flops["assembly"] == pytest.approx(2 * 16 / 3, rel=2 / 16)


def test_every_public_function_states_its_status():
    for name in theory.__all__:
        doc = getattr(theory, name).__doc__
        assert doc is not None
        assert "Status:" in doc or name == "distinct_rows"
