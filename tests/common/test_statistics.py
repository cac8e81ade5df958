"""Statistics of records: clustered by the independent unit, free of order and labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.common.records import Records
from attnlab.common.statistics import (
    FEWEST,
    MOST,
    absolute,
    counted,
    deterministic,
    difference,
    each,
    estimate,
    function_of_means,
    geometric_mean,
    known,
    largest,
    mean,
    median,
    of,
    proportion_of,
    ratio_of_means,
    slope,
    smallest,
)

PARAMETERS = {"parameters": ("n", "model"), "shared": ("model",)}


def table(seeds: int = 7) -> list[dict]:
    rng = np.random.default_rng(5)
    return [
        {"n": n, "model": model, "seed": seed, "error": float(noise / n * (1 + (model == "b"))), "hit": bool(noise > 1)}
        for seed in range(seeds)
        for n in (10, 20, 40)
        for model in ("a", "b")
        for noise in rng.normal(1, 0.2, 1)
    ]


def root_mean_square(records: Records) -> float:
    """Root mean square of the mean errors."""
    return float(np.sqrt(np.mean(records.curve("n", "error", model="a").mean ** 2)))


def two_sizes(records: Records) -> float:
    """Error at 10 over error at 40."""
    return records.mean("error", n=10, model="a") / records.mean("error", n=40, model="a")


def doubled(row) -> float | None:
    """Twice the error of model a."""
    return 2 * row["error"] if row["model"] == "a" else None


STATISTICS = [
    mean(of("error", n=10, model="a")),
    mean(two_sizes),
    median(of("error", n=10, model="a")),
    difference(of("error", model="b"), of("error", model="a")),
    ratio_of_means(of("error", model="b", n=20), of("error", model="a", n=20)),
    ratio_of_means([of("error", n=10), of("hit")], of("error", n=40)),
    slope(of("error", model="a"), "n"),
    proportion_of(of("hit", model="a")),
    proportion_of(of("hit")),
    largest([mean(of("error", n=n)) for n in (10, 20)]),
    smallest(lambda r: [absolute(mean(of("error", n=n))) for n in r.values("n")]),
    function_of_means(root_mean_square),
    deterministic(root_mean_square, why="a toy"),
    geometric_mean(of("error", n=10), of("error", n=MOST)),
    smallest(each(mean(of("error", model="b")), "n")),
    mean(of(doubled, n=FEWEST)),
    proportion_of(of("error"), above=0.05),
]


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
@settings(max_examples=15, deadline=None)
@given(rows=st.permutations(range(42)), labels=st.permutations(range(7)))
def test_order_and_labels_do_not_matter(statistic, rows, labels):
    plain = table()
    shuffled = [{**plain[i], "seed": labels[plain[i]["seed"]]} for i in rows]
    found, again = (estimate(statistic, Records(tuple(x), **PARAMETERS)) for x in (plain, shuffled))
    assert again == pytest.approx(found, rel=1e-12)


def test_rows_of_one_replicate_are_one_number():
    often = [row for row in table() for _ in range(3)]
    found = [estimate(mean(of("error")), Records.of(rows)) for rows in (table(), often)]
    assert found[0] == pytest.approx(found[1])
    assert found[0].runs == 7


def test_a_replicate_with_a_missing_cell_does_not_count():
    rows = [row for row in table() if (row["seed"], row["n"]) != (3, 10)]
    without = [row for row in table() if row["seed"] != 3]
    assert estimate(mean(of("error")), Records.of(rows)) == estimate(mean(of("error")), Records.of(without))


def test_a_pair_needs_both_sides():
    rows = [row for row in table() if (row["seed"], row["model"]) != (3, "a")]
    found = estimate(difference(of("error", model="b", n=10), of("error", model="a", n=10)), Records.of(rows))
    assert found.runs == 6


def test_what_is_known_has_no_noise():
    rows = [*table(), {"seed": 0, "model": "theory", "error": 0.1}]
    against = estimate(difference(of("error", model="a", n=10), known(of("error", model="theory"))), Records.of(rows))
    alone = estimate(mean(of("error", model="a", n=10)), Records.of(rows))
    assert against == pytest.approx((alone.value - 0.1, alone.low - 0.1, alone.high - 0.1, 7))


def test_instances_are_replicates_at_one_setting():
    """Three sizes and seven seeds are 21 planted instances; both models see the same one."""
    records = Records(tuple(table()), **PARAMETERS)
    assert estimate(proportion_of(of("hit", model="a")), records).runs == 21
    assert estimate(proportion_of(of("hit")), records).runs == 21
    assert estimate(proportion_of(of("hit"), unit=("seed",)), records).runs == 7


def test_counted_trials_are_units():
    records = Records.of({"seed": s, "found": 45, "runs": 50} for s in range(2))
    assert estimate(counted(of("found"), "runs"), records)[::3] == (0.9, 100)


def test_a_part_with_more_replicates_does_not_add_freedom():
    few, many = (
        [{"part": "few", "seed": s, "x": float(s**2)} for s in range(4)],
        [{"part": "many", "seed": s} for s in range(32)],
    )
    value = function_of_means(lambda r: r.mean("x", part="few"))
    both = Records(tuple(few + many), parameters=("part",))
    assert estimate(value, both) == pytest.approx(estimate(mean(of("x", part="few")), both))
    assert estimate(value, both).runs == 4


def test_a_setting_that_was_run_once_is_no_noise():
    rows = [{"part": "noisy", "seed": s, "x": float(s)} for s in range(5)] + [{"part": "theory", "seed": 0, "x": 10.0}]
    value = function_of_means(lambda r: r.mean("x", part="noisy") - r.mean("x", part="theory"))
    found = estimate(value, Records(tuple(rows), parameters=("part",)))
    alone = estimate(mean(of("x", part="noisy")), Records.of(rows))
    assert found == pytest.approx((alone.value - 10, alone.low - 10, alone.high - 10, 5))


def test_a_row_function_reads_the_rows_it_does_not_leave_out():
    found = estimate(mean(of(doubled, n=10)), Records.of(table()))
    plain = estimate(mean(of("error", n=10, model="a")), Records.of(table()))
    assert found == pytest.approx((2 * plain.value, 2 * plain.low, 2 * plain.high, 7))
    with pytest.raises(LookupError, match="no finished cell for Twice the error of model a"):
        estimate(mean(of(doubled, model="b")), Records.of(table()))


def test_the_ends_of_a_parameter_are_those_of_the_chosen_rows():
    rows = [row for row in table() if (row["model"], row["n"]) != ("a", 40)]
    last = estimate(mean(of("error", model="a", n=MOST)), Records.of(rows))
    assert last == estimate(mean(of("error", model="a", n=20)), Records.of(rows))
    assert str(of("error", n=MOST)) == "error[n=largest]"


def test_each_setting_is_one_part():
    records = Records.of(table())
    parts = each(mean(of("error", model="a")), "n")(records)
    assert len(parts) == 3
    values = [estimate(mean(of("error", model="a", n=n)), records).value for n in (10, 20, 40)]
    assert [part.measure(records).value for part in parts] == pytest.approx(values)
    assert str(each(mean(of("error")), "n")) == "mean: error, at each n"


def test_a_geometric_mean_is_the_exponential_of_a_mean():
    rows = [{"seed": s, "x": float(10**s), "y": 10.0} for s in range(4)]
    found = estimate(geometric_mean(of("x"), of("y")), Records.of(rows))
    assert found.value == pytest.approx(10**0.5)
    # both ends are the same factor away
    assert found.high / found.value == pytest.approx(found.value / found.low)


def test_a_slope_is_that_of_the_law():
    rows = [{"n": n, "seed": s, "y": 3.0 * n**-0.5 * (1 + 0.01 * s)} for n in (1, 10, 100) for s in range(4)]
    assert estimate(slope(of("y"), "n"), Records.of(rows)).value == pytest.approx(-0.5)
    with pytest.raises(LookupError, match="no replicate"):
        estimate(slope(of("y", n=1), "n"), Records.of(rows))


def test_statistics_say_what_they_are():
    said = [str(s) for s in STATISTICS]
    assert said[1] == "mean: Error at 10 over error at 40"
    assert said[4] == "ratio of means: error[model=b, n=20] / error[model=a, n=20]"
    assert said[6] == "slope: log error[model=a] against log n"
    assert said[9] == "largest over settings: mean: error[n=10]; mean: error[n=20]"
    assert said[12] == "deterministic (a toy): Root mean square of the mean errors"
