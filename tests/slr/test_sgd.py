import os
import subprocess
import sys

import numpy as np
import pytest

from attnlab import slr
from attnlab.common.compute import Compute
from attnlab.slr.initial import vectors


def direct_sgd(task, k, v, *, lam, step, n_steps, batch_size, seed):
    """SGD in d dimensions, written out."""
    from scipy.special import erf

    rng = np.random.default_rng(seed)
    for _ in range(n_steps):
        X, y = task.sample(batch_size, seed=rng)
        A, V = X @ k, X @ v
        error = np.sum(erf(lam * A) * V, axis=1) - y
        c_v = 2 / batch_size * error[:, None] * erf(lam * A)
        c_k = 2 / batch_size * error[:, None] * lam * 2 / np.sqrt(np.pi) * np.exp(-((lam * A) ** 2)) * V
        g_k, g_v = np.einsum("bl,bld->d", c_k, X), np.einsum("bl,bld->d", c_v, X)
        k, v = k - step * (g_k - (k @ g_k) * k), v - step * (g_v - (v @ g_v) * v)
        k, v = k / np.linalg.norm(k), v / np.linalg.norm(v)
    return slr.overlaps_of(k, v, task.k_star, task.v_star)


def test_reduced_chain_has_the_law_of_sgd_in_d_dimensions():
    # long steps, so that the part outside the frame matters after few of them
    setting = {"lam": 0.6, "step": 0.04, "n_steps": 8, "batch_size": 2}
    task = slr.Task(d=12, L=3, gamma=0.8, noise_std=0.3)
    k, v = (x[0] for x in vectors(1, task.k_star, task.v_star, seed=8))
    runs = 400
    direct = np.array([direct_sgd(task, k, v, **setting, seed=i) for i in range(runs)])
    start = np.tile(slr.overlaps_of(k, v, task.k_star, task.v_star), (runs, 1))
    reduced = slr.simulate_sgd(start, d=12, L=3, gamma=0.8, noise_std=0.3, log_every=8, seed=1, **setting)[-1]
    # means and second moments of all five overlaps, each to 4.5 standard errors of the difference
    for a, b in ((direct, reduced), (direct**2, reduced**2)):
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / runs)
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4.5 * error).all()


def test_small_steps_follow_the_population_map():
    start = slr.initial_overlaps(60, 20, seed=2)
    law = {"d": 60, "L": 5, "gamma": 2**-0.5, "lam": 0.4, "step": 2e-4, "n_steps": 1500, "log_every": 750}
    noisy = slr.simulate_sgd(start, **law, batch_size=20, seed=0)
    smooth = slr.theory.gradient_descent(start, **law)
    # fluctuations are of order sqrt(step * time / batch): averaged over 20 runs, below .02
    assert np.abs(noisy.mean(axis=1) - smooth.mean(axis=1)).max() < 0.02


def test_trajectory_does_not_depend_on_how_it_is_logged():
    start = slr.initial_overlaps(20, 2, seed=0)
    options = {"d": 20, "L": 3, "lam": 0.5, "step": 1e-3, "n_steps": 7, "seed": 4}
    every, some = slr.simulate_sgd(start, **options), slr.simulate_sgd(start, **options, log_every=3)
    # a step of 1e-3 times the rounding of a gradient in single precision; other random numbers would differ by 1e-3
    assert np.allclose(every[[0, 3, 6, 7]], some, rtol=0, atol=1e-7)


def test_bad_arguments_are_named():
    for change, message in (({"d": 5}, "d must be"), ({"batch_size": 0}, "batch_size must be"), ({"lam": 0.0}, "lam")):
        with pytest.raises(ValueError, match=message):
            slr.simulate_sgd(np.zeros((1, 5)), **{"d": 20, "L": 3, "lam": 0.5, "step": 1e-3, "n_steps": 1, **change})


SECOND_DEVICE = """
import jax
import numpy as np
from attnlab.slr.figures import descent, stochastic, success

small = {"d": 20, "L": 4, "gamma": 2**-0.5, "runs": 6, "lam": 1.0, "decay": 1e-4, "step": 2e-3, "n_steps": 60}
host, other = jax.devices()
law = {**small, "log_every": 30, "start": "sphere", "noise_std": 0.1, "batch_size": 3}
counts = {**small, "kind": "fixed", "p_mean": 0.0, "p_overlap": 0.0}
used = set()
asarray = np.asarray


def seen(x, *args, **kwargs):
    if isinstance(x, jax.Array):
        used.update(d.id for d in x.devices())
    return asarray(x, *args, **kwargs)


def cells(device):
    seeds = [np.random.SeedSequence(i) for i in range(3)]
    runs = zip((descent.run, stochastic.run), seeds)
    paths = [run({**law, "device": device}, seed)["path"] for run, seed in runs]
    return paths, success.run({**counts, "device": device}, seeds[2])


(one, counted), np.asarray = cells("cpu"), seen
with jax.default_device(other):
    default = cells("auto")
print(sorted(used), end=" ")
used.clear()
cells("cpu")
print(sorted(used), end=" ")
used.clear()
# the second device in the place of a GPU
jax.devices = lambda kind: [{"cpu": host, "gpu": other}[kind]]
named = cells("gpu")
same = [np.array_equal(a, b) and again == counted for two, again in (default, named) for a, b in zip(one, two)]
print(sorted(used), all(same))
"""


def test_figures_run_on_the_default_device_of_jax_or_the_one_they_name_with_the_same_numbers():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", SECOND_DEVICE], env={**os.environ, **flags}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[1] [0] [1] True"


def test_the_call_names_its_device():
    start = slr.initial_overlaps(20, 5, seed=0)
    options = {"d": 20, "L": 3, "lam": 0.5, "step": 1e-3, "n_steps": 20, "log_every": 10}
    default = slr.simulate_sgd(start, **options)
    assert np.array_equal(slr.simulate_sgd(start, **options, compute=Compute(device="cpu")), default)
    with pytest.raises(ValueError, match=r"compute\.dtype"):
        slr.simulate_sgd(start, **options, compute=Compute(dtype="float32"))


@pytest.mark.slow
def test_published_experiment():
    start = slr.initial_overlaps(80, 30, seed=0)
    path = slr.simulate_sgd(
        start, d=80, L=10, lam=2.0, decay=1e-4, noise_std=0.1, step=1e-3, n_steps=200_000, log_every=50_000
    )
    kappa, nu = np.abs(path[:, :, 0]), np.abs(path[:, :, 1])
    assert np.sum((kappa[-1] > 0.9) & (nu[-1] > 0.9) & (path[-1, :, 0] * path[-1, :, 1] > 0)) >= 29
    assert (kappa[-1].mean(), nu[-1].mean()) == pytest.approx((0.9980, 0.9985), abs=6e-4)
    assert kappa[1].mean() == pytest.approx(0.57, abs=0.02)
    risk = slr.theory.risk(*path[-1].T, d=80, L=10, lam=2 / 21)
    assert np.mean(risk) == pytest.approx(0.184, abs=3e-3)
