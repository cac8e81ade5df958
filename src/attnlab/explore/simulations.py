"""Stored simulations as the explorer's points: means with standard errors, shares with exact intervals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.common.records import Records, Row, proportion
from attnlab.lab.store import Store

Point = dict[str, Any]
# How many stored trajectories of the phase portrait are shown, and how many points of each.
TRAJECTORIES, TIMES = 16, 14
# The learners of the mha figures, in words that fit a legend on a phone.
LEARNERS = {
    "race": "race (second order)",
    "sculpting": "sculpting",
    "projected_lbfgs": "L-BFGS, W projected out",
    "lbfgs": "L-BFGS",
    "adam": "Adam",
}


class Cells:
    """The finished cells of a store by figure; without a store there are none."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    def of(self, *figures: str) -> list[Row]:
        """The rows of these figures, whatever the scale they were run at."""
        if self._store is None:
            return []
        done = (row for figure in figures for row in self._store.rows(figure) if row.status == "done")
        return list(Records.of(map(self._store.record, done)))


def simulations(path: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Every point that the four views show, from the store at ``path`` (None: empty lists)."""
    if path is None:
        return _views(Cells(None))
    with Store(path) as store:
        return _views(Cells(store))


def _views(cells: Cells) -> dict[str, Any]:
    return {"aim": _aim(cells), "slr": _slr(cells), "rfa": _rfa(cells), "mha": _mha(cells)}


def count(points: Mapping[str, Mapping[str, Sequence[Point]]]) -> int:
    """How many points there are in all views."""
    return sum(len(series) for view in points.values() for series in view.values())


def groups(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of some names, in sorted order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return {key: found[key] for key in sorted(found)}


def means(rows: Iterable[Row], names: Sequence[str], value: Callable[[Row], float]) -> list[Point]:
    """Mean and standard error of a result for each setting of ``names``; one run has no bar.

    What is not finite, a width of infinity or a run that diverged, has no place on the axes.
    """
    points = []
    for key, chosen in groups(rows, names).items():
        sample = np.array([value(row) for row in chosen], dtype=float)
        sem = sample.std(ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else 0.0
        if all(np.isfinite(x) for x in (*key, sample.mean()) if not isinstance(x, str)):
            points.append({**dict(zip(names, key, strict=True)), "mean": float(sample.mean()), "sem": float(sem)})
    return points


def shares(rows: Iterable[Row], names: Sequence[str]) -> list[Point]:
    """Share of recovered layers with its exact 95 % interval for each setting of ``names``."""
    points = []
    for key, chosen in groups(rows, names).items():
        share = proportion(row["success"] for row in chosen)
        point = dict(zip(names, key, strict=True))
        points.append({**point, "share": share.value, "low": share.low, "high": share.high})
    return points


def _aim(cells: Cells) -> dict[str, list[Point]]:
    names = ("channel", "tokens", "rho", "d", "learner", "alpha")
    amp: list[Row] = [
        {"channel": "softmax", **row, "learner": "amp", "error": row["mse"]}
        for row in cells.of("aim.softmax", "aim.phase_diagram", "aim.hardmax")
    ]
    for row in cells.of("aim.gradient_descent"):
        tokens = row["tokens"]
        common = {**row, "channel": "softmax", "alpha": round(row["scaled"] / (tokens**2 + tokens - 2), 10)}
        if row["learner"] == "amp":
            amp.append({**common, "error": row["mse"]})
        else:
            amp += [{**common, "learner": name, "error": row[name]} for name in ("single", "averaged")]
    spectra = [
        {**dict(zip(("tokens", "rho", "d", "alpha"), key, strict=True)), "eigenvalues": _rounded(chosen, "found")}
        for key, chosen in groups(cells.of("aim.spectra"), ("tokens", "rho", "d", "alpha")).items()
    ]
    return {"points": means(amp, names, lambda row: row["error"]), "spectra": spectra}


def _rounded(rows: Iterable[Row], name: str) -> list[float]:
    return [round(float(x), 4) for row in rows for x in np.ravel(row[name])]


def _slr(cells: Cells) -> dict[str, list[Point]]:
    # One row of each cell carries the whole path.
    portraits = [
        {"lam": row["lam"], "d": row["d"], "L": row["L"], **_thinned(np.asarray(row["path"]))}
        for row in cells.of("slr.portrait")
        if row["start"] == 0
    ]
    labels = {"slr.manifold": "starts on M", "slr.small": "random starts", "slr.large": "random starts, large λ"}
    labels |= {"slr.schedule": "random starts, λ lowered", "slr.sgd": "SGD, λ lowered"}
    runs = []
    for figure, label in labels.items():
        # Runs that ended at the planted pair or, where none does, all of them.
        rows = [{**row, "final": row["lam"] / (1 + row["decay"] * row["n_steps"])} for row in cells.of(figure)]
        found = [row for row in rows if row["end"] == "oracle"]
        for point in means(found or rows, ("d", "L", "final"), lambda row: row["risk"]):
            words = f"{label}: {len(found)} of {len(rows)} arrive"
            runs.append({**point, "lam": point["final"], "label": words})
    return {"portrait": portraits, "runs": runs}


def _thinned(path: np.ndarray) -> dict[str, list[float]]:
    """Some trajectories of (times, runs, 2), a few points of each."""
    runs = np.linspace(0, path.shape[1] - 1, TRAJECTORIES).astype(int)
    times = np.unique(np.geomspace(1, path.shape[0], TIMES).astype(int)) - 1
    shown = path[np.ix_(times, runs)].reshape(-1, 2).round(4)
    return {"kappa": shown[:, 0].tolist(), "nu": shown[:, 1].tolist()}


def _rfa(cells: Cells) -> dict[str, list[Point]]:
    def error(row: Row) -> float:
        return float(row["error"])

    def named(*figures: str) -> list[Row]:
        return [{**row, "N": row["n_keys"]} for row in cells.of(*figures)]

    heads = [row for row in named("rfa.heads") if row["heads"] > 0]
    curves = named("rfa.keys", "rfa.correlations")
    setting = ("target", "model", "d", "N", "heads", "n")
    return {
        "curves": means(curves, setting, error),
        "heads": means(heads, setting, error),
        "scales": means(named("rfa.bias-scale"), ("target", "d", "N", "heads", "n", "scale"), error),
    }


def _mha(cells: Cells) -> dict[str, list[Point]]:
    def named(figure: str) -> list[Row]:
        return [{**row, "m": row["n_heads"]} for row in cells.of(figure)]

    samples = shares(named("mha.samples"), ("learner", "m", "d", "k", "rho", "n"))
    families = shares(named("mha.recovery"), ("learner", "starts", "iterations", "n", "family"))
    return {
        "samples": [{**point, "label": LEARNERS[point["learner"]]} for point in samples],
        "sizes": shares(named("mha.sizes"), ("k", "rho", "d", "n", "m")),
        "families": [{**point, "label": _budget(point)} for point in families],
    }


def _budget(point: Point) -> str:
    starts, n = point["starts"], point["n"]
    budget = "" if point["learner"] == "sculpting" else f", {starts} start{'s' if starts > 1 else ''}"
    return f"{LEARNERS[point['learner']]}, n = {n}{budget}"
