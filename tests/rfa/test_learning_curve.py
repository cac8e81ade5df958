import time

import numpy as np
import pytest

from attnlab.common.prediction import Prediction
from attnlab.rfa import Task, theory
from attnlab.rfa.theory.complexity import modes
from attnlab.rfa.theory.equivalent import solve
from attnlab.rfa.theory.spectrum import spectrum

# An independent implementation: model, target, power, d, N, n, heads or units, error over Var f*. The trace of the
# modes that it does not list (degree above 10 for attention, 4 for the MLP) is a ridge.
TABLE = [
    ("rfa", "key_power", 1, 16, 16, 256, 300, 0.01690),
    ("rfa", "key_power", 1, 16, 16, 1024, 300, 0.00369),
    ("rfa", "key_power", 1, 16, 16, 1024, 30, 0.05096),
    ("rfa", "key_power", 2, 16, 16, 1024, 100, 0.35927),
    ("rfa", "key_power", 2, 8, 8, 1024, 300, 0.01858),
    ("rfa", "query_power", 1, 16, 16, 256, 300, 0.00866),
    ("rfa", "query_power", 1, 16, 16, 1024, 300, 0.00410),
    ("rfa", "query_power", 1, 16, 4, 256, 100, 0.08277),
    ("rfa", "query_power", 2, 16, 16, 1024, 100, 0.95016),
    ("rfa", "query_power", 2, 16, 4, 1024, 300, 0.94418),
    ("rfa", "corr_power", 1, 16, 16, 1024, 30, 0.83286),
    ("rfa", "corr_power", 1, 16, 16, 1024, 300, 0.60536),
    ("rfmlp", "key_power", 1, 16, 16, 1024, 2000, 0.10078),
    ("rfmlp", "key_power", 1, 16, 16, 1024, 8000, 0.02828),
    ("rfmlp", "key_power", 2, 16, 16, 256, 500, 2.31119),
    ("rfmlp", "corr_power", 1, 16, 16, 1024, 8000, 0.69886),
]


# Mean of six runs (attention) or three (MLP) of the same settings, by the same source.
SIMULATED = [
    0.01774,
    0.00460,
    0.0731,
    0.420,
    0.01923,
    0.00997,
    0.00483,
    0.1046,
    1.009,
    0.983,
    0.884,
    0.637,
    0.1226,
    0.0287,
    2.63,
    0.728,
]


def make(target, power, d=16, n_keys=16, **options):
    return Task(target, d=d, n_keys=n_keys, **{"q" if target == "corr_power" else "p": power}, **options)


def predict(model, target, power, d, n_keys, n, units, **options):
    size = {"n_heads" if model == "rfa" else "width": units}
    return theory.learning_curve(make(target, power, d, n_keys), n, model, **size, **options)


@pytest.mark.parametrize(("row"), TABLE, ids=lambda row: "-".join(map(str, row[:7])))
def test_the_equations_against_an_independent_implementation(row):
    # the table has five decimals: half a unit of the last one more
    assert float(predict(*row[:7])) == pytest.approx(row[7], rel=1e-3, abs=5e-6)


def test_predictions_are_near_the_simulations_and_nearer_with_the_tail_among_the_features():
    features, ridge = (
        np.log([float(predict(*row[:7], tail=tail)) / s for row, s in zip(TABLE, SIMULATED, strict=True)])
        for tail in ("features", "ridge")
    )
    assert (np.exp(features) > 0.55).all()
    assert (np.exp(features) < 1.25).all()
    assert 0.75 < np.exp(features.mean()) < 1.1
    assert (np.abs(features) <= np.abs(ridge) + 0.02).all()
    mlp = [row[0] == "rfmlp" for row in TABLE]
    assert np.abs(features[mlp]).max() < 0.05 < np.abs(ridge[mlp]).max()


@pytest.mark.parametrize("model", ["rfa", "rfmlp"])
def test_where_the_list_of_modes_ends_does_not_matter_when_the_tail_is_among_the_features(model):
    # the tail as a ridge changes by 6 % from degree 4 to degree 6 (MLP)
    degrees = {"rfa": (6, 12), "rfmlp": (4, 6)}[model]
    for n, units in ((256, 100.0), (1024, 2000.0)):
        short, long = (
            solve(spectrum(16, 16, model, degree=degree).with_tail(), *(np.array([x]) for x in (n, units, n * 1e-6)))
            for degree in degrees
        )
        assert short.nu == pytest.approx(long.nu, rel=1e-6)
        assert short.gap == pytest.approx(long.gap, rel=1e-6)


def excess_of_few_heads(bulk, energy, parts, n, ridge):
    """c of error = limit + c / M, to first order in eps = 1 / M: an expansion by hand, apart from the solver.

    delta_c = eps s_c / a_c with a_c features of class c a head and s_c = sum_j m_j L_cj q_j, q_j = 1 / (lam_j + nu).
    Of log det, stationary in delta, -eps/2 sum_c s_c^2 / a_c is left, so df gains eps nu sum_c s_c s_c' / a_c, and
    q_j gains eps q_j^2 sum_c L_cj s_c / a_c. The derivative in eps is that at an imaginary eps.
    """
    bulk = bulk.with_tail()
    L, m, a = bulk.parts, bulk.multiplicity, bulk.counts

    def sums(power, nu):
        return (L * m) @ (1 / (L.sum(axis=0) + nu) ** power)

    def df(nu, eps):
        return nu * 0 + L.sum(axis=0) @ (m / (L.sum(axis=0) + nu)) - eps * nu * (sums(1, nu) / a) @ sums(2, nu)

    def unlearned(nu, eps):
        q = 1 / (parts.sum(axis=0) + nu)
        return energy @ (q + eps * q**2 * ((sums(1, nu) / a) @ parts))

    def slope(function, nu, eps):
        # differences of eighth order: the derivative in eps is already an imaginary part
        steps = np.arange(1, 5) * 0.02
        weights = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280]) / 0.02
        return weights @ [function(nu * np.exp(h), eps) - function(nu * np.exp(-h), eps) for h in steps]

    def error(eps):
        log_nu = np.log(bulk.trace / n) + 0j
        for _ in range(60):
            nu = np.exp(log_nu)
            log_nu -= (df(nu, eps) + n * ridge / nu - n) / (slope(df, nu, eps) - n * ridge / nu)
        nu = np.exp(log_nu)
        return -nu * slope(unlearned, nu, eps) / (1 - (df(nu, eps) + slope(df, nu, eps)) / n)

    return error(0).real, error(1e-12j).imag / 1e-12


@pytest.mark.parametrize("row", TABLE[::2], ids=lambda row: "-".join(map(str, row[:7])))
def test_the_excess_of_many_heads_is_a_constant_over_their_number(row):
    model, target, power, d, n_keys, n, *_ = row
    task = make(target, power, d, n_keys)
    limit, c = excess_of_few_heads(theory.spectrum(d, n_keys, model), *modes(task, model), n, 1e-6)
    limit, c = limit / task.variance, c / task.variance
    assert limit == pytest.approx(float(theory.learning_curve(task, n, model, tail="features")), rel=1e-8)
    # the next term is 1e-5 of it and less at 1e8
    for M in (1e8, 1e9):
        excess = float(predict(model, target, power, d, n_keys, n, M, tail="features")) - limit
        assert excess * M == pytest.approx(c, rel=2e-5)
    # so a relative 1e-6 needs M = 1e6 c / limit heads: more than 1e8 where the limit is small
    enough = 2e6 * max(c / limit, 1)
    assert float(predict(model, target, power, d, n_keys, n, enough, tail="features")) == pytest.approx(limit, rel=1e-6)


def test_the_limit_solves_the_equation_of_the_effective_ridge():
    bulk = theory.spectrum(16, 16)
    curve = theory.learning_curve(Task("key_power"), 512)
    nu = curve.detail["nu"]
    filled = bulk.multiplicity @ (bulk.eigenvalue / (bulk.eigenvalue + nu))
    assert filled + (512e-6 + bulk.tail) / nu == pytest.approx(512, rel=1e-9)
    assert curve.detail["df"] == pytest.approx(512 - (512e-6 + bulk.tail) / nu, rel=1e-9)
    # among the features the tail fills degrees of freedom, and the effective ridge is the same
    listed = theory.learning_curve(Task("key_power"), 512, tail="features").detail
    assert listed["nu"] == pytest.approx(nu, rel=1e-9)
    assert listed["df"] == pytest.approx(512 - 512e-6 / nu, rel=1e-9)


def test_learning_curve_of_harmonics():
    # independently computed at d = N = 16, lam = 1e-6; n = 64, 256, 1024, 2048
    table = {
        (0, 1): (0.219, 0.010, 0.000, 0.000),
        (0, 2): (1.34, 0.786, 0.151, 0.036),
        (1, 1): (1.33, 0.742, 0.129, 0.029),
        (1, 2): (1.46, 1.29, 1.11, 0.730),
        (0, 3): (1.47, 1.34, 1.43, 1.27),
    }
    for harmonic, errors in table.items():
        curve = theory.learning_curve(Task("harmonic", harmonic=harmonic), [64, 256, 1024, 2048])
        assert curve.converged.all()
        np.testing.assert_allclose(curve, errors, atol=0.006)


def test_predictions_broadcast_over_samples_and_heads():
    curve = theory.learning_curve(Task(), np.array([[100], [400]]), n_heads=[10, 30, 100])
    assert isinstance(curve, Prediction)
    assert curve.shape == curve.converged.shape == curve.detail["nu"].shape == (2, 3)
    assert curve[1, 2] == pytest.approx(theory.learning_curve(Task(), 400, n_heads=100).value)
    assert isinstance(theory.learning_curve(Task(), 400).value, float)


def test_a_hundred_values_take_less_than_two_seconds():
    start = time.process_time()
    n, heads = np.geomspace(32, 1e4, 10)[:, None], np.geomspace(10, 1e4, 10)
    curve = theory.learning_curve(Task(p=3), n, n_heads=heads)
    assert time.process_time() - start < 2
    # beside the peak the tail as a ridge depends on where the list ends, and says so; among the features it does not
    assert curve.converged.mean() > 0.9
    assert theory.learning_curve(Task(p=3), n, n_heads=heads, tail="features").converged.all()


@pytest.mark.parametrize("tail", ["ridge", "features"])
@pytest.mark.parametrize(("d", "n_keys", "n"), [(16, 16, 512), (8, 4, 200), (32, 8, 2000)])
@pytest.mark.parametrize(
    ("target", "power"), [("key_power", 1), ("key_power", 2), ("query_power", 2), ("corr_power", 1)]
)
def test_more_heads_do_no_harm_under_a_ridge(target, power, d, n_keys, n, tail):
    heads = np.unique(np.geomspace(np.ceil(10 * n / (d + 1)), 1e8, 60).astype(int))
    for ridge in (1.001e-3, 1e-2, 1.0):
        curve = theory.learning_curve(make(target, power, d, n_keys), n, ridge=ridge, n_heads=heads, tail=tail)
        # 1e-12 for rounding: the last heads change nothing
        assert (np.diff(curve.value) <= 1e-12).all()
        assert curve.value[0] > curve.value[-1]


def test_degrees_of_freedom_are_bounded_by_features_and_samples():
    curve = theory.learning_curve(Task(), 2000, n_heads=[1, 10, 100, 1000], ridge=1e-9)
    df = curve.detail["df"]
    assert (df <= np.minimum(17 * np.array([1, 10, 100, 1000]), 2000)).all()
    assert df[0] == pytest.approx(17, rel=0.01)
    assert (curve.detail["upsilon"] < 1).all()


def test_label_noise_raises_the_learning_curve():
    quiet, loud = (theory.learning_curve(Task(p=2, noise_std=s), 512, n_heads=100).value for s in (0.0, 0.05))
    assert loud > quiet


def test_what_is_not_known_is_refused():
    with pytest.raises(ValueError, match="model must be one of"):
        theory.learning_curve(Task(), 10, "patch")
    with pytest.raises(ValueError, match="n must be >= 1"):
        theory.learning_curve(Task(), 0)
    with pytest.raises(ValueError, match="n_heads must be >= 1"):
        theory.learning_curve(Task(), 10, n_heads=0)
    with pytest.raises(ValueError, match="width is not a parameter of model='rfa'"):
        theory.learning_curve(Task(), 10, width=10)
    with pytest.raises(ValueError, match="not an average"):
        theory.learning_curve(Task("softmax"), 10)
    with pytest.raises(ValueError, match="tail must be one of"):
        theory.learning_curve(Task(), 10, tail="none")
