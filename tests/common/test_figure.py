import pickle
from collections.abc import Mapping

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from attnlab.common.claim import Claim, at_least
from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Records
from attnlab.common.seeds import cell_seed, digest
from attnlab.common.statistics import known, mean, of, ratio_of_means


def run(params: Mapping, seed: np.random.SeedSequence) -> dict:
    return {"x": float(np.random.default_rng(seed).standard_normal()) + params["d"]}


def draw(records: Records) -> Canvas:
    return Canvas()


def figure(*grids: Grid, **options) -> Figure:
    claims = [Claim("toy.1", "x exceeds d - 10", "derived here", mean(of("x")), at_least(0), "no chance of less")]
    scales = {"quick": grids or (Grid({"d": [4, 8], "lam": 0.5}, seeds=2),), "paper": (Grid({"d": 16, "lam": 0.5}),)}
    return Figure("toy.one", "t", "p", "s", scales, run, draw, claims, **options)


def state(cell) -> tuple[int, ...]:
    return tuple(cell.seed.generate_state(4).tolist())


def test_a_grid_is_the_product_of_its_lists():
    points = list(Grid({"d": [4, 8], "pair": (1, 2), "lam": [0.1, 0.2]}, seeds=3).points())
    assert len(points) == 2 * 2 * 3
    assert points[0] == {"d": 4, "pair": (1, 2), "lam": 0.1, "seed": 0}
    assert [p["seed"] for p in points] == [0] * 4 + [1] * 4 + [2] * 4


def test_a_changed_grid_takes_the_names_it_has():
    grid = Grid({"d": [4, 8]}, seeds=2).changed({"d": 64, "other": 1, "seeds": 5})
    assert grid == Grid({"d": 64}, seeds=5)
    with pytest.raises(ValueError, match="seeds must be an integer >= 1, got 0"):
        grid.changed({"seeds": 0})


def test_a_cell_is_named_by_the_digest_of_what_it_computes():
    cell = figure().cells("paper")[0]
    params = {"d": 16, "lam": 0.5, "seed": 0}
    assert cell.params == params
    assert cell.id == digest({"figure": "toy.one", "params": params, "stream": 1})
    expected = cell_seed({"figure": "toy.one", "params": params, "stream": 1})
    assert np.array_equal(cell.seed.generate_state(4), expected.generate_state(4))


def test_a_cell_gives_the_same_numbers_whenever_it_runs():
    cells = figure().cells("quick")
    forwards = {cell.id: cell() for cell in cells}
    backwards = {cell.id: cell() for cell in reversed(figure().cells("quick"))}
    assert forwards == backwards
    assert pickle.loads(pickle.dumps(cells[0]))() == cells[0]()


def test_overlapping_grids_share_their_cells():
    cells = figure(Grid({"d": [4, 8], "lam": 0.5}), Grid({"lam": 0.5, "d": [8, 16]})).cells("quick")
    assert sorted(cell.params["d"] for cell in cells) == [4, 8, 16]


def test_another_stream_has_other_cells_and_fresh_numbers():
    first, second = figure().cells("quick"), figure().cells("quick", stream=2)
    assert not {c.id for c in first} & {c.id for c in second}
    assert not {state(c) for c in first} & {state(c) for c in second}


def test_cells_that_differ_in_shared_parameters_see_the_same_data():
    cells = figure(Grid({"d": [4, 8], "lam": [0.1, 0.2]}, seeds=2), shared=("lam",)).cells("quick")
    states = {(c.params["d"], c.params["seed"]): set() for c in cells}
    for cell in cells:
        states[cell.params["d"], cell.params["seed"]].add(state(cell))
    assert all(len(s) == 1 for s in states.values())
    assert len(set.union(*states.values())) == 4
    assert len({cell.id for cell in cells}) == 8


def test_replicates_see_different_data():
    cells = figure(Grid({"d": 4, "lam": 0.5}, seeds=5)).cells("quick")
    assert len({state(c) for c in cells}) == 5


def test_cells_of_one_shape_run_one_after_the_other():
    cells = figure(Grid({"lam": [0.1, 0.2], "d": [8, 4]}, seeds=3), shape=("d",)).cells("quick")
    shapes = [cell.params["d"] for cell in cells]
    assert shapes == sorted(shapes)


def test_knobs_are_the_names_of_all_grids():
    knobs = figure(Grid({"d": [4], "lam": 0.5}, seeds=2), Grid({"d": 9, "extra": "x"}, seeds=7)).knobs("quick")
    assert knobs == {"d": [4], "lam": 0.5, "extra": "x", "seeds": 7}


def test_one_knob_changes_one_scale():
    changed = figure().changed("quick", {"d": 64, "seeds": 3})
    assert [c.params["d"] for c in changed.cells("quick")] == [64] * 3
    assert [c.id for c in changed.cells("paper")] == [c.id for c in figure().cells("paper")]


def test_a_knob_that_changes_one_of_several_grids_leaves_no_claim():
    """Grids may have different values: that of the first is no setting of the others."""
    two = figure(Grid({"d": [4, 8], "lam": 0.5}, seeds=2), Grid({"d": 9, "lam": 0.7}, seeds=2))
    changed = two.changed("quick", {"lam": 0.5})
    assert not changed.claims
    assert changed.unjudged.startswith("lam changed")
    assert figure().changed("quick", {"lam": 0.5, "seeds": 5}).claims


def test_a_cell_reached_by_a_knob_is_the_cell_of_the_grid():
    assert figure().changed("quick", {"d": 16, "seeds": 1}).cells("quick")[0].id == figure().cells("paper")[0].id


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda f: f.changed("quick", {"lamb": 1}),
            "knob of toy.one must be one of 'd', 'lam', 'seeds', got 'lamb'; did",
        ),
        (lambda f: f.changed("quick", {"seed": 1}), "got 'seed'; did you mean 'seeds'?"),
        (lambda f: f.changed("qick", {}), "scale must be one of 'quick', 'paper', got 'qick'; did you mean 'quick'?"),
        (lambda f: f.cells("papr"), "did you mean 'paper'?"),
        (lambda f: f.knobs("papr"), "did you mean 'paper'?"),
    ],
)
def test_wrong_names_suggest_the_right_one(call, said):
    with pytest.raises(ValueError) as problem:
        call(figure())
    assert said in str(problem.value)


def test_a_figure_decides_its_claims():
    cells = figure().cells("quick")
    (verdict,) = figure().decide(Records.of({**c.params, **c()} for c in cells), "quick")
    assert verdict.claim.id == "toy.1"
    assert verdict.estimate.runs == 2


def test_a_missing_extra_is_named():
    assert figure().missing_extra() is None
    assert figure(requires={"numpy": "base", "no_such_module": "nlp"}).missing_extra() == "nlp"


def test_a_part_with_one_replicate_is_a_known_number_beside_the_others():
    run, reference = of("x", part="run"), known(of("x", part="reference"))
    figure = Figure(
        name="toy.parts",
        title="",
        paper="",
        shows="",
        scales={"quick": [Grid({"part": "run"}, seeds=4), Grid({"part": "reference"}, seeds=1)]},
        run=lambda params, seed: {},
        draw=lambda records: None,
        claims=[Claim("toy.1", "", "", ratio_of_means(run, reference), at_least(0.5), "")],
    )
    rows = [{"part": "run", "seed": i, "x": 1 + 0.01 * i} for i in range(4)] + [
        {"part": "reference", "seed": 0, "x": 1.0}
    ]
    (verdict,) = figure.decide(Records.of(rows), "quick")
    assert verdict.status == "holds"
    assert verdict.estimate.runs == 4
