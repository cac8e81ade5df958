import numpy as np
import pytest
from scipy import stats

from attnlab.common.records import Records, proportion


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
    assert all(f"{name} = {value}" in str(problem.value) for name, value in conditions.items())


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
    with pytest.raises(LookupError, match="no outcomes"):
        proportion([])


def test_groups_are_units_whatever_the_order(table):
    assert {key: len(rows) for key, rows in table.groups(("seed",)).items()} == {"[0]": 2, "[1]": 2, "[2]": 2}
    assert len(table.groups(("n", "seed"))) == 6
    known = Records(table.rows, parameters=("n", "model"), shared=("n",))
    assert len(known.groups(("instance",))) == 3
