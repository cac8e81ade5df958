"""The GPU script where there is no GPU, and the model that is computed from its rates."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu, harness, page, scaling
from benchmarks.results import Results
from benchmarks.rows import Row


def test_without_a_gpu_it_says_so(capsys):
    assert gpu.main(["--only", "device"]) == 2
    assert "no GPU here" in capsys.readouterr().err


def test_an_unknown_part_suggests_the_nearest(capsys):
    with pytest.raises(SystemExit) as end:
        gpu.main(["--only", "devise"])
    assert end.value.code == 2
    assert "did you mean 'device'" in capsys.readouterr().err


def test_tiny_sizes_run_anywhere_and_are_stored(tmp_path, capsys):
    assert gpu.main(["--tiny", "--only", "device,slr", "--json", str(tmp_path / "g.json")]) == 0
    stored = Results.read(tmp_path / "g.json")
    names, printed = [row.name for row in stored.rows["device"]], capsys.readouterr().out
    for name in ("matrix product, fp32", "matrix product, fp64", "copy bandwidth", "normal deviates", "eigh d=128"):
        assert name in names
        assert f"\n{name}: " in printed
    assert stored.failed == {}
    row = stored.rows["slr"][0]
    # float64 on both sides, 50 steps of a stable map
    assert float(row.detail.rpartition(" ")[2]) < 1e-12


def test_parts_that_the_file_holds_are_kept(tmp_path, monkeypatch):
    path = str(tmp_path / "g.json")
    monkeypatch.setattr(gpu, "call", lambda part, *_: [Row(f"of {part}", 1.0, "s", "", "")])
    assert gpu.main(["--tiny", "--only", "slr", "--json", path]) == 0
    assert gpu.main(["--tiny", "--only", "grid", "--json", path]) == 0
    assert {part: rows[0].name for part, rows in Results.read(Path(path)).rows.items()} == {
        "slr": "of slr",
        "grid": "of grid",
    }
    with pytest.raises(ValueError, match="choose another file"):
        Results({"device": "abacus"}).beside(Results.read(Path(path)))


def test_the_grid_leaves_out_what_the_time_does_not_allow(tmp_path, monkeypatch):
    from benchmarks import gpu_grid

    monkeypatch.setattr(gpu_grid, "D", 10)
    monkeypatch.setattr(gpu_grid, "INITS", 2)
    monkeypatch.setattr(gpu_grid, "PRECISION", "highest")  # a CPU has no other
    cells = [(2, 0.2, 0), (3, 0.1, 0)]
    now = gpu_grid.time.perf_counter()
    records = list(gpu_grid.write(tmp_path / "g.csv", gpu_grid.train(cells, now + 60)))
    assert [record[:3] for record in records] == cells
    assert (tmp_path / "g.csv").read_text().count("\n") == 2 + 1 + 2
    assert list(gpu_grid.train(cells, now)) == []


def test_rows_are_stored_as_they_are_said_and_survive_a_failure(tmp_path, monkeypatch):
    path = tmp_path / "g.json"

    def part(name, seconds, tiny):
        harness.say(Row("first", 1.0, "s", "", ""))
        assert [row["name"] for row in json.loads(path.read_text())["rows"]] == ["first"]
        raise RuntimeError("cut")

    monkeypatch.setattr(gpu, "call", part)
    results = Results({})
    gpu.run(["rfa"], 10.0, results, path)
    assert [row.name for row in Results.read(path).rows["rfa"]] == ["first"]
    assert "cut" in results.failed["rfa"]
    assert harness.LISTENERS == []


def test_a_row_that_was_said_and_returned_is_stored_once(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "call", lambda *args: [harness.say(Row("once", 1.0, "s", "", ""))])
    results = Results({})
    gpu.run(["rfa", "aim"], 10.0, results, tmp_path / "g.json")
    assert [len(rows) for rows in results.rows.values()] == [1, 1]


def test_each_part_gets_its_share_of_the_time_that_is_left(tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(gpu, "call", lambda part, seconds, tiny: given.update({part: seconds}) or [])
    gpu.run(["rfa", "aim", "mha"], 120.0, Results({}), tmp_path / "g.json")
    assert given["rfa"] == pytest.approx(120 * 4 / 12, rel=0.02)
    assert given["aim"] == pytest.approx(120 * 6 / 8, rel=0.02)
    assert given["mha"] == pytest.approx(120, rel=0.02)


def test_the_script_needs_neither_the_command_line_nor_pictures():
    absent = ("rich", "typer", "matplotlib", "distributed", "pydantic", "jinja2")
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({absent}))\n"
        "from benchmarks import gpu\n"
        "import importlib\n"
        "for part in [*gpu.WEIGHTS, *gpu.LONG]: importlib.import_module(f'benchmarks.gpu_{part}').run\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=True, timeout=120)


RATES = scaling.Rates({"fp32": 4e13}, {"fp32": 5e13}, 4e13, 1e11, eigh_seconds=1.0, eigh_d=4000, memory=1.4e11)


def test_the_cost_of_message_passing_by_hand():
    run = scaling.amp_cost(RATES, 8, "fp32", True, 4000)
    n = 0.1 * 4000**2
    step = 4 * n * 4000**2 / 8 / 4e13 + 1.0
    assert run.seconds == pytest.approx(30 * step)
    assert run.gpu_hours == pytest.approx(8 * 30 * step / 3600)
    # tokens 2 x 4000 float32, ten float64 numbers for three indices and a weight; twelve dense matrices; four chunks
    assert run.memory == pytest.approx(n / 8 * (32_000 + 80) + 96 * 4000**2 + 2**30)
    again = scaling.amp_cost(RATES, 8, "fp32", False, 4000)
    assert again.seconds - run.seconds == pytest.approx(30 * n * 2 * 4000 / 8 / 1e11)
    assert run.memory - again.memory == pytest.approx(n / 8 * 32_000)


def test_the_cost_of_a_gram_matrix_by_hand():
    run = scaling.rfa_cost(RATES, 8, "fp32", 100_000)
    assert run.seconds == pytest.approx((2 * 1e10 * 170_000 / 5e13 + 1e15 / 3 / 4e13) / 8)
    assert run.memory == pytest.approx(12e10 / 8 + 2**30)


def test_the_largest_size_fits_and_the_next_does_not():
    def cost(size):
        return scaling.rfa_cost(RATES, 1, "fp32", size)

    run = scaling.largest(cost, RATES)
    assert run.memory <= 0.9 * RATES.memory < cost(run.size + 100).memory


def test_the_tables_of_the_page_come_from_the_rows():
    def row(name, value):
        return Row(name, value, "", "", "")

    measured = [
        row(f"{what}, {kind}", 40.0) for what in ("AMP products", "matrix product") for kind in ("fp32", "tf32")
    ]
    measured += [
        row("Cholesky, fp64", 40.0),
        row("normal deviates", 100.0),
        row("eigh d=1000", 0.1),
        row("eigh d=4000", 1.0),
    ]
    run = Results({"device": "abacus", "device memory GiB": 130.0}, {"device": measured})
    assert scaling.Rates.measured(run).eigh_seconds == 1.0
    for block in (scaling.rates_table, scaling.amp_table, scaling.rfa_table):
        assert "Not measured" not in block(run, page.table)
        assert "Not measured" in block(None, page.table)
        assert "Not measured" in block(Results({}, {"device": measured[:3]}), page.table)
    assert scaling.amp_table(run, page.table).count("\n") == 1 + 2 * 2 * 3
