"""Several informative tokens: the same five overlaps, K special and L - K ordinary tokens."""

import jax
import numpy as np
import pytest
from scipy import special

from attnlab import slr
from attnlab.slr import theory
from attnlab.slr.initial import overlaps_of, vectors
from attnlab.slr.namespace import jax_namespace
from attnlab.slr.theory import overlaps as formula

PAPER = {"d": 400, "L": 10}


def random_pair(rng, d):
    """Overlaps of two unit vectors with the first two basis vectors, and the vectors."""
    k, v = rng.standard_normal((2, d))
    k[:2] += 2 * rng.standard_normal(2)
    v[:2] += 2 * rng.standard_normal(2)
    k, v = k / np.linalg.norm(k), v / np.linalg.norm(v)
    return np.array([k[0], v[1], v[0], k[1], k @ v]), k, v


def published_risk(overlaps, d, L, lam, gamma):
    """The formula for one location, written out as in its own derivation."""
    kappa, nu, theta, eta, rho = overlaps
    law = formula.Setting((d / 2) ** 0.5, gamma, L, 1)
    m, mu = formula.moments(kappa, law, lam), (d / 2) ** 0.5
    c1, c2 = lam * gamma**2, lam**2 * gamma**4
    return (
        gamma**2
        - 2 * (gamma**2 * nu * m.E0 + c1 * mu * eta * theta * m.E1 + c2 * eta * rho * m.E2)
        + (mu**2 * theta**2 + gamma**2) * m.Z
        + 2 * c1 * mu * theta * rho * m.Z1
        + c2 * rho**2 * m.Z2
        + (L - 1) * (m.Z0 + lam**2 * rho**2 * m.Z02)
        + (L - 1) * (L - 2) * m.C**2 * rho**2
        + 2 * (L - 1) * m.C * rho * (mu * theta * m.E0 + c1 * rho * m.E1)
    )


def test_one_location_is_the_published_formula():
    rng = np.random.default_rng(0)
    for d, L, lam, gamma in [(10, 2, 0.3, 0.7), (60, 5, 0.1, 1.2), (400, 10, 0.9, 2**-0.5)]:
        o, _, _ = random_pair(rng, d)
        exact = published_risk(o, d, L, lam, gamma)
        assert theory.risk(*o, d=d, L=L, lam=lam, gamma=gamma).value == pytest.approx(exact, rel=1e-14)


def monte_carlo(task, k, v, lam, n, seed):
    """Losses of erf attention on samples of the task itself."""
    X, y = task.sample(n, seed=seed)
    return (y - np.sum(special.erf(lam * (X @ k)) * (X @ v), axis=1)) ** 2


@pytest.mark.parametrize("K", [2, 3, 6])
def test_risk_of_several_locations_against_monte_carlo(K):
    rng, scores = np.random.default_rng(K), []
    for point in range(7):
        d, lam, gamma = int(rng.integers(4, 30)), float(rng.uniform(0.1, 1.5)), float(rng.uniform(0.4, 1.3))
        task = slr.Task(d, 6, gamma, 0.3, locations=K, directions=np.eye(2, d))
        o, k, v = random_pair(rng, d)
        losses = monte_carlo(task, k, v, lam, 40_000, point)
        scores.append((losses.mean() - theory.risk(task, *o, lam=lam)) / (losses.std() / 200))
    # seven standard normal scores for each K, twenty-one in all: root mean square below 1.9, each below 4
    assert np.max(np.abs(scores)) < 4
    assert np.sqrt(np.mean(np.square(scores))) < 1.9


def test_gradient_of_several_locations_against_autodiff():
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        # compiled once for all K: one operation at a time it takes seconds
        automatic = jax.jit(jax.grad(lambda x, law: formula.risk(x, law, 0.4, xp=jax_namespace())))
        for K in (1.0, 2.0, 5.0):
            law = formula.Setting(5.0, 0.8, 5.0, K)
            o, _, _ = random_pair(rng, 50)
            assert np.allclose(automatic(o, law), formula.gradient(o, law, 0.4), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("K", [2, 4])
def test_the_map_of_several_locations_is_descent_in_d_dimensions(K):
    d, (k_star, v_star) = 30, np.eye(2, 30)
    k, v = (x[0] for x in vectors(1, k_star, v_star, seed=3))
    law = formula.Setting((d / 2) ** 0.5, 0.8, 6, K)
    with jax.enable_x64(True):
        xp = jax_namespace()

        def risk(k, v):
            return formula.risk((k[0], v[1], v[0], k[1], k @ v), law, 0.3, xp=xp)

        def step(_, kv):
            k, v = kv
            gk, gv = jax.grad(risk, (0, 1))(k, v)
            k, v = k - 2e-3 * (gk - (k @ gk) * k), v - 2e-3 * (gv - (v @ gv) * v)
            return k / xp.sqrt(k @ k), v / xp.sqrt(v @ v)

        end = jax.jit(lambda k, v: jax.lax.fori_loop(0, 2000, step, (k, v)))(k, v)
        end = overlaps_of(*(np.asarray(x) for x in end), k_star, v_star)
    start = overlaps_of(k, v, k_star, v_star)
    task = slr.Task(d, 6, 0.8, locations=K)
    path = theory.gradient_descent(task, start, lam=0.3, step=2e-3, n_steps=2000, log_every=2000)
    assert np.abs(path[-1, 0] - end).max() < 1e-12


@pytest.mark.parametrize("K", [1, 3, 10])
@pytest.mark.parametrize("lam", [0.1, 0.6])
def test_landscape_of_several_locations(K, lam):
    task = slr.Task(**PAPER, locations=K)
    unstable = np.linalg.eigvals(theory.flow_jacobian(task, np.zeros(5), lam=lam)).real
    exponents = theory.saddle_exponents(task, lam=lam)
    expected = sorted([exponents.swapped, exponents.manifold])
    assert np.allclose(np.sort(unstable[unstable > 0]), expected, rtol=1e-4)
    point = theory.swapped_minimum(task, lam=lam)
    assert np.abs(theory.velocity(task, point.overlaps, lam=lam)).max() < 1e-11
    # the planted pair: its transversal rates are those of the numerical Jacobian
    block = theory.flow_jacobian(task, [1.0, 1, 0, 0, 0], lam=lam)[2:, 2:]
    rates = formula.transverse_rates(formula.setting(task), lam)
    assert np.allclose(np.sort(np.linalg.eigvals(block).real), rates, rtol=1e-4, atol=1e-4)
    # the minimum on M: stationary, and lower than its neighbours
    kappa = float(theory.manifold_minimum(task, lam=lam))
    risks = [theory.manifold_risk(task, x, 1.0, lam=lam).value for x in (kappa, 0.98 * kappa, min(1, 1.02 * kappa))]
    assert min(risks) == risks[0]
    if kappa < 1:
        assert abs(theory.risk_gradient(task, kappa, 1.0, lam=lam)[0]) < 1e-12


def test_the_manifold_is_invariant_for_several_locations():
    task = slr.Task(100, 5, locations=3)
    start = theory.initial_overlaps(100, 4, start="manifold", seed=0)
    path = theory.gradient_descent(task, start, lam=0.3, step=2e-3, n_steps=4000, log_every=1000)
    assert np.abs(path[:, :, 2:]).max() <= 1e-14
    assert np.allclose(np.abs(path[-1, :, 0]), theory.manifold_minimum(task, lam=0.3).value, atol=1e-3)


@pytest.mark.parametrize("K", [2, 4])
def test_linear_and_bayes_risks_of_several_locations(K):
    task = slr.Task(6, 4, 0.7, 0.2, locations=K, seed=1)
    X, y = task.sample(60_000, seed=0)
    linear = slr.LinearPredictor().fit(X, y)
    X_test, y_test = task.sample(60_000, seed=1)
    for learner, risk, tolerance in (
        # 24 coefficients cost 24 / 60 000 of the risk
        (linear, theory.linear_risk(task), 0.001),
        (slr.BayesPredictor(task).fit(X, y), theory.bayes_risk(task, n_draws=60_000), 0.0),
    ):
        losses = (learner.predict(X_test) - y_test) ** 2
        assert abs(losses.mean() - risk) < 4 * np.hypot(losses.std() / np.sqrt(60_000), risk.error) + tolerance
    if K == 4:  # all tokens matter: there is nothing to find
        assert theory.linear_risk(task) == pytest.approx(0.04)
        assert theory.bayes_risk(task, n_draws=10).value == pytest.approx(0.04)


def test_linear_learning_curve_of_several_locations():
    task = slr.Task(20, 4, noise_std=0.1, locations=3)
    errors = []
    for i in range(8):
        X, y = task.sample(200, seed=(2 * i))
        X_test, y_test = task.sample(2000, seed=2 * i + 1)
        errors.append(np.mean((slr.LinearPredictor().fit(X, y).predict(X_test) - y_test) ** 2))
    predicted = theory.linear_learning_curve(task, 200)
    assert np.mean(errors) == pytest.approx(predicted.value, abs=4 * np.std(errors, ddof=1) / np.sqrt(8) + 0.02)


@pytest.mark.parametrize("activation", ["softmax", "linear", "offset_erf"])
def test_attention_risk_of_several_locations_against_monte_carlo(activation):
    found = theory.attention_risk(activation, nu=4.0, L=5, locations=2)
    chi = np.random.default_rng(0).standard_normal((200_000, 5)) + np.array([2.0, 2, 0, 0, 0])
    scores = found.detail["scale"] * chi
    sigma = {
        "softmax": lambda: special.softmax(scores, axis=1),
        "linear": lambda: 1 + scores,
        "offset_erf": lambda: 1 + special.erf(scores + found.detail["offset"]),
    }[activation]()
    direct = 1 - sigma[:, :2].sum(axis=1).mean() ** 2 / (2 * np.sum(sigma**2, axis=1).mean())
    assert found == pytest.approx(direct, abs=5e-3)
    assert theory.bayes_attention_risk(nu=4.0, L=5, locations=2) < found


def test_regularised_attention_with_two_locations_follows_its_state_evolution():
    predicted = theory.erm_state_evolution("softmax", 6.0, nu=4.0, L=3, locations=2, noise_std=0.1, n_draws=2**11)
    assert predicted.converged
    errors = []
    for i in range(4):
        task = slr.Task(150, 3, 1.0, 0.1, nu=4.0, locations=2, seed=i)
        learner = slr.SoftmaxAttention(random_state=i).fit(*task.sample(900, seed=(2 * i)))
        X, y = task.sample(4000, seed=2 * i + 1)
        errors.append(np.mean((learner.predict(X) - y) ** 2) - 0.01)
    # .02 for d = 150, and the scatter of four runs
    assert np.mean(errors) == pytest.approx(predicted.value, abs=0.02 + 3 * np.std(errors, ddof=1) / 2)


def test_sgd_with_several_locations_follows_the_map_for_small_steps():
    task = slr.Task(60, 5, locations=3)
    start = slr.initial_overlaps(60, 20, seed=2)
    options = {"lam": 0.4, "step": 2e-4, "n_steps": 1000, "log_every": 1000}
    noisy = slr.simulate_sgd(task, start, **options, batch_size=20, seed=0)
    smooth = theory.gradient_descent(task, start, **options)
    assert np.abs(noisy.mean(axis=1) - smooth.mean(axis=1)).max() < 0.02


def test_locations_are_checked_and_sampled():
    task = slr.Task(8, 5, locations=3)
    X, y, J = task.sample_with_location(2000, seed=0)
    assert J.shape == (2000, 3)
    assert (np.sort(J, axis=1)[:, 1:] > np.sort(J, axis=1)[:, :-1]).all()
    assert np.allclose(np.bincount(J.ravel()) / 2000, 0.6, atol=5 * np.sqrt(0.24 / 2000))
    assert np.allclose(task.posterior(X).sum(axis=1), 3)
    picked = np.take_along_axis(X @ task.v_star, J, axis=1).sum(axis=1) / np.sqrt(3)
    assert np.allclose(y, picked)
    for change, message in (
        ({"locations": 6}, "locations must be"),
        ({"locations": 2, "law": "max"}, "must be 1 for the"),
    ):
        with pytest.raises(ValueError, match=message):
            slr.Task(**{"d": 8, "L": 5, **change})
