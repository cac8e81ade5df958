import numpy as np
import pytest
from scipy import stats

from attnlab.common.records import Estimate, Records, jackknife, proportion


@pytest.fixture
def table() -> Records:
    """Two values of n, three replicates, one result that is n + seed."""
    return Records.of({"n": n, "seed": s, "error": float(n + s), "model": "rfa"} for n in (10, 20) for s in range(3))


def test_rows_in_rows_become_rows():
    records = Records.of([{"d": 4, "rows": [{"t": 0, "loss": 1.0}, {"t": 1, "loss": 0.5}]}, {"d": 8, "loss": 2.0}])
    assert list(records) == [{"d": 4, "t": 0, "loss": 1.0}, {"d": 4, "t": 1, "loss": 0.5}, {"d": 8, "loss": 2.0}]
    assert len(Records.of([{"d": 4, "rows": []}])) == 0


def test_where_keeps_exact_matches(table):
    assert len(table.where(n=10)) == 3
    assert len(table.where(n=10, seed=2)) == 1
    assert len(table.where()) == 6


@pytest.mark.parametrize("conditions", [{"n": 11}, {"unknown": 1}, {"n": 10, "model": None}])
def test_an_empty_answer_is_an_error_that_says_what_was_asked(table, conditions):
    with pytest.raises(LookupError) as problem:
        table.where(**conditions)
    assert str(conditions) in str(problem.value)


def test_a_missing_name_is_not_none(table):
    with pytest.raises(LookupError):
        table.where(bias=None)
    assert len(Records.of([{"bias": None}]).where(bias=None)) == 1


def test_columns_stack_arrays(table):
    assert table.column("error").tolist() == [10, 11, 12, 20, 21, 22]
    assert Records.of([{"a": np.zeros(3)}, {"a": np.ones(3)}]).column("a").shape == (2, 3)
    with pytest.raises(KeyError):
        table.column("absent")


def test_values_are_sorted_whatever_their_kind():
    rows = [{"x": v} for v in ("b", 2, None, "a", 1.5, 2)] + [{"y": 0}]
    assert Records.of(rows).values("x") == [1.5, 2, None, "a", "b"]


def test_means_and_curves(table):
    assert table.mean("error", n=20) == 21.0
    curve = table.curve("n", "error", model="rfa")
    assert curve.x.tolist() == [10, 20]
    assert curve.mean.tolist() == [11, 21]
    # the standard error of 0, 1, 2 is 1 / sqrt(3)
    assert np.allclose(curve.sem, 3**-0.5)
    assert np.isnan(table.where(seed=0).curve("n", "error").sem).all()


def test_without_seed_drops_one_replicate(table):
    assert table.without_seed(1).values("seed") == [0, 2]


@pytest.mark.parametrize(("successes", "n"), [(0, 12), (7, 12), (12, 12)])
def test_the_interval_of_a_proportion_is_clopper_pearson(successes, n):
    share = proportion([True] * successes + [False] * (n - successes))
    # the beta quantiles of the textbook form
    low = stats.beta.ppf(0.025, successes, n - successes + 1) if successes else 0.0
    high = stats.beta.ppf(0.975, successes + 1, n - successes) if successes < n else 1.0
    assert share == pytest.approx((successes / n, low, high, n), rel=1e-6)


def test_a_proportion_of_nothing_is_an_error():
    with pytest.raises(ValueError):
        proportion([])


def test_the_jackknife_of_a_mean_is_students_interval(seed):
    samples = np.random.default_rng(seed).normal(2.0, 3.0, size=9)
    records = Records.of({"seed": i, "x": float(v)} for i, v in enumerate(samples))
    found = jackknife(lambda r: r.mean("x"), records)
    half = stats.t.ppf(0.975, 8) * samples.std(ddof=1) / 3
    assert found == pytest.approx((samples.mean(), samples.mean() - half, samples.mean() + half, 9), rel=1e-12)


def test_the_jackknife_leaves_out_whole_replicates(seed):
    """Rows of one replicate share its data: their number must not shrink the interval."""
    samples = np.random.default_rng(seed).normal(size=6)
    once = Records.of({"seed": i, "x": float(v)} for i, v in enumerate(samples))
    often = Records.of({"seed": i, "t": t, "x": float(v)} for i, v in enumerate(samples) for t in range(5))
    assert jackknife(lambda r: r.mean("x"), often) == pytest.approx(jackknife(lambda r: r.mean("x"), once))


def test_the_jackknife_of_a_ratio_agrees_with_the_delta_method(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(10, 1, 200), rng.normal(5, 0.5, 200)
    records = Records.of({"seed": i, "a": float(x), "b": float(y)} for i, (x, y) in enumerate(zip(a, b, strict=True)))
    found = jackknife(lambda r: r.mean("a") / r.mean("b"), records)
    ratio = a.mean() / b.mean()
    sem = np.std(a - ratio * b, ddof=1) / np.sqrt(200) / b.mean()
    # the two differ in second order: relative 1/n times a moderate constant
    assert (found.high - found.low) / 2 == pytest.approx(stats.t.ppf(0.975, 199) * sem, rel=0.02)


@pytest.mark.parametrize(
    "rows", [[{"seed": 4, "x": 1.5}], [{"x": 1.5}], [{"seed": 0, "x": 1.0}, {"seed": 0, "x": 2.0}]]
)
def test_a_single_replicate_has_no_noise_estimate(rows):
    assert jackknife(lambda r: r.mean("x"), Records.of(rows)) == Estimate(1.5, 1.5, 1.5, 1)


def test_replicates_that_do_not_matter_add_no_freedom(seed):
    noise = np.random.default_rng(seed).standard_normal(4)
    few = [{"part": "a", "x": float(x), "seed": i} for i, x in enumerate(noise)]
    many = [{"part": "b", "x": 0.0, "seed": i} for i in range(30)]
    value = lambda r: r.mean("x", part="a")  # noqa: E731
    assert jackknife(value, Records.of(few + many)) == pytest.approx(jackknife(value, Records.of(few)))


def test_a_setting_that_was_run_once_stays_when_a_replicate_is_left_out(seed):
    """A reference computed once beside repeated runs: the noise is that of the runs."""
    noise = np.random.default_rng(seed).standard_normal(5)
    rows = [{"part": "run", "x": float(x), "seed": i} for i, x in enumerate(noise)] + [
        {"part": "reference", "x": 10.0, "seed": 0}
    ]
    value = lambda r: r.mean("x", part="run") - r.mean("x", part="reference")  # noqa: E731
    with pytest.raises(LookupError, match="reference"):
        jackknife(value, Records.of(rows))
    found = jackknife(value, Records(tuple(rows), parameters=("part",)))
    alone = jackknife(lambda r: r.mean("x") - 10, Records.of(rows[:-1]))
    assert found == pytest.approx(alone)
