import os

import numpy as np
import pytest
from toy_figures import FIGURE

from attnlab import lab
from attnlab.lab.engine import LocalWorkers
from attnlab.lab.engine.quiet import same_environment
from attnlab.lab.errors import LabError
from attnlab.lab.runner import collect, compute_cells, missing_cells
from attnlab.lab.store import Store


def test_run_returns_records_verdicts_and_a_drawing():
    result = lab.run(FIGURE)
    assert len(result.records) == 12
    (verdict,) = result.verdicts
    assert verdict.status == "holds"
    assert verdict.as_registered
    assert result.draw().axes


def test_a_store_makes_the_second_run_read_only_what_was_computed(tmp_path, monkeypatch):
    first = lab.run(FIGURE, store=tmp_path / "s.sqlite")
    monkeypatch.setattr("attnlab.lab.outcome.answer", lambda cell: pytest.fail("computed again"))
    second = lab.run(FIGURE, store=tmp_path / "s.sqlite")
    assert np.array_equal(first.records.column("error"), second.records.column("error"))


def test_a_knob_changes_the_grid_and_nothing_else():
    result = lab.run(FIGURE, set={"n": [50], "seeds": 2})
    assert sorted(result.records.column("n")) == [50, 50]
    with pytest.raises(ValueError, match="knob of toy"):
        lab.run(FIGURE, set={"m": 3})
    with pytest.raises(ValueError, match="scale must be one of"):
        lab.run(FIGURE, scale="papr")


def test_the_seed_of_a_cell_does_not_depend_on_its_neighbours():
    alone = lab.run(FIGURE, set={"n": [100]}).records.column("error")
    together = lab.run(FIGURE).records.where(n=100).column("error")
    assert np.array_equal(alone, together)


def test_fail_fast_stops_at_the_first_failed_cell(tmp_path):
    import dataclasses

    broken = dataclasses.replace(FIGURE, run=_raise)
    with lab.Store(tmp_path / "s.sqlite", writable=True) as store:
        with pytest.raises(LabError, match="division by zero"):
            compute_cells(broken.cells("quick"), store, lab.SerialEngine(), fail_fast=True)
        assert store.count() == {"failed": 1}


def _raise(params, seed):
    return {"error": 1 / 0}


def test_compiled_code_is_dropped_when_a_worker_grows_too_large(monkeypatch):
    import jax

    from attnlab.lab import outcome

    dropped, sizes = [], iter([99, 101, 90, 110, 116, 80])  # a look, then one more after each drop
    monkeypatch.setattr(jax, "clear_caches", lambda: dropped.append(True))
    monkeypatch.setattr(outcome, "_memory", lambda: next(sizes))
    monkeypatch.setattr(outcome, "_LEFT", outcome._Left())
    monkeypatch.setattr(outcome, "COMPILED_CODE_LIMIT", 100)
    monkeypatch.setattr(outcome, "COMPILATION", 0.0)
    drops = []
    for _ in range(4):
        outcome.compute(FIGURE.cells("quick")[0])
        drops.append(len(dropped))
    # what the first drop left is not dropped again before the process has grown by a quarter of the limit
    assert drops == [0, 1, 1, 2]


@pytest.mark.slow
def test_workers_leave_the_environment_of_the_driver_as_it_was():
    before = dict(os.environ)
    with LocalWorkers(1)() as client:
        inside = client.submit(os.environ.get, "OPENBLAS_NUM_THREADS", pure=False).result(timeout=60)
    assert inside == "1"
    assert dict(os.environ) == before


def test_what_is_set_and_what_is_added_is_undone(monkeypatch):
    monkeypatch.setenv("ATTNLAB_SET", "here")
    before = dict(os.environ)
    with same_environment():
        os.environ.update({"ATTNLAB_SET": "there", "ATTNLAB_ADDED": "1"})
    assert dict(os.environ) == before


def test_a_result_of_other_code_is_computed_again_or_kept_and_marked(tmp_path, monkeypatch):
    path = tmp_path / "s.sqlite"
    first = lab.run(FIGURE, store=path)
    assert first.old == 0
    monkeypatch.setattr("attnlab.common.figure.code_of", lambda run: "another")
    kept = lab.run(FIGURE, store=path, keep_old=True)
    assert kept.old == len(kept.cells) == len(first.cells)
    with Store(path, writable=True) as store:
        assert len(missing_cells([FIGURE], "quick", store)) == len(first.cells)
        assert collect(FIGURE, "quick", store).missing == len(first.cells)
    again = lab.run(FIGURE, store=path)
    assert (again.old, again.missing) == (0, 0)
    assert {made["code"] for made in again.versions} == {"another"}
    with Store(path) as store:  # replaced, not stored beside
        assert sum(store.count().values()) == len(first.cells)
