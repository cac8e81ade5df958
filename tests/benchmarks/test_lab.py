"""The benchmark of the lab, and the page that quotes it."""

import re
from pathlib import Path

from benchmarks import lab


def test_the_cluster_page_quotes_rows_that_the_benchmark_writes(monkeypatch):
    monkeypatch.setattr(lab, "driver_cost", lambda *arguments, **options: (0.1, 2000.0))
    monkeypatch.setattr(lab, "run_apart", lambda program: ("0.0001 7.0 20.0", 4e8))
    rows = [*lab.throughput(), *lab.sizes_of_sweeps()]
    assert all(row.met is not False for row in rows)
    page = Path(lab.__file__).parents[1] / "docs" / "cluster.md"
    quoted = set(re.findall(r"<!-- bench_lab.json; name=(.*?); value -->", page.read_text(encoding="utf-8")))
    assert len(quoted) > 10
    assert quoted <= {row.name for row in rows} | {"lab: late workers"}


def test_a_large_sweep_is_computed_and_found_again():
    """Seconds of a cell, of looking and of the report: the sweep is there, or the benchmark raises."""
    assert all(seconds > 0 for seconds in lab.large_sweep(20))
