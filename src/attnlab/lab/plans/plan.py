"""The result of a plan for each learner: the examples it needs by theory and by simulation, and what they cost."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.drawing import COLORS, MARKERS, line, panels, plain_log, points, style
from attnlab.common.records import Estimate, Records
from attnlab.lab.plans.forecast import Forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Cost:
    """Seconds of one trial, ``a n^exponent`` through the measured cells, and at the size needed (or the largest)."""

    exponent: float
    seconds: float
    n: float

    def __str__(self) -> str:
        text = f"{self.seconds:.2g} s at n = {self.n:.0f}"
        # the time of a shorter trial is that of starting it, and does not grow
        return f"{text}, grows as n^{self.exponent:.1f}" if self.seconds >= 0.1 and self.exponent > 0 else text


@dataclass(frozen=True)
class Need:
    """One learner.

    Attributes
    ----------
    learner : its name, with the parameters that were given.
    theory : the prediction of its own reference, if there is one.
    measured : the size it needs, with the bootstrap interval over seeds; infinite where the target was not reached.
    best, best_n : smallest mean error relative to null that was measured, and where.
    cost : of one trial.
    note : why there is no measurement, or what failed.
    size : of a learner whose size is planned too, where the target is reached (or at the largest size tried).
    """

    learner: str
    theory: Forecast | None
    measured: Estimate | None
    best: float
    best_n: int
    cost: Cost | None
    note: str = ""
    size: str = ""

    @property
    def reached(self) -> bool:
        """Whether the simulation came down to the target."""
        return self.measured is not None and math.isfinite(self.measured.value)


@dataclass(frozen=True)
class Plan:
    """How many examples each learner needs on a task.

    Attributes
    ----------
    task : its name, with the parameters that were given.
    error : the target, relative to the null predictor.
    n_min, n_max, seeds : the smallest and the largest size tried, and the replicates.
    needs : one for each learner.
    floor : what the Bayes predictor would need, where that is known.
    records : every trial behind it.
    """

    task: str
    error: float
    n_min: int
    n_max: int
    seeds: int
    needs: tuple[Need, ...]
    floor: Forecast | None
    records: Records

    def rows(self) -> list[tuple[str, ...]]:
        """The table: learner, by theory, by simulation, cost, best error, size of the learner."""
        head: list[tuple[str, ...]] = [("Bayes", str(self.floor), "", "", "", "")] if self.floor else []
        return head + [(need.learner, str(need.theory or "-"), *self._measured(need), need.size) for need in self.needs]

    def _measured(self, need: Need) -> tuple[str, str, str]:
        # infinite where every cell failed
        best = f"{need.best:.3g} at n = {need.best_n}" if math.isfinite(need.best) else ""
        if need.measured is None:
            return need.note, "", best
        cost = str(need.cost or "")
        if not need.reached:
            return f"not by n = {self.n_max}" + f" ({need.note})" * bool(need.note), cost, best
        value, low, high, _ = need.measured
        # the target is reached at the smallest size: where below it is not known
        if high <= self.n_min:
            return f"at most {self.n_min}", cost, best
        limit = f"{high:.0f}" if math.isfinite(high) else f"> {self.n_max}"
        return f"{value:.0f} [{low:.0f}, {limit}]", cost, best

    def to_json(self) -> str:
        """Everything but the trials; an infinite number is null."""
        fields = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "records"
        }
        return json.dumps(_plain(fields), indent=2, allow_nan=False)

    def save(self, folder: str | Path) -> list[Path]:
        """Write plan.json and plan.png; return their paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        (target / "plan.json").write_text(self.to_json() + "\n")
        with style():
            self.draw().savefig(target / "plan.png", dpi=150)
        return [target / "plan.json", target / "plan.png"]

    def draw(self, axes: Sequence[Axes] | None = None) -> Any:
        """Learning curves with theory as lines, and the sizes needed side by side; on two axes of yours if given."""
        curves, sizes = panels(1, 2, width=5.2, height=3.8)[1][0] if axes is None else axes
        canvas: Any = curves.figure
        self._draw_curves(curves)
        self._draw_sizes(sizes)
        canvas.suptitle(f"{self.task}: examples for an error of {self.error:g} of null")
        return canvas

    def _draw_curves(self, axes: Axes) -> None:
        for i, need in enumerate(self.needs):
            color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
            rows = Records(tuple(row for row in self.records if row["label"] == need.learner))
            if len(rows):
                points(axes, rows.curve("n_train", "relative_error"), color=color, fmt=marker, ms=4, label=need.learner)
            if need.theory:
                _draw_forecast(axes, need.theory, self.n_max, color=color)
        if self.floor:
            _draw_forecast(axes, self.floor, self.n_max, color="#999999", linestyle="--", label="Bayes")
        axes.axhline(self.error, color="black", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", yscale="log", xlabel="examples n", ylabel="test error / null error")
        smallest = min([row["relative_error"] for row in self.records], default=self.error)
        # two decades below the target are enough: an error of zero would stretch the axis without end
        axes.set_ylim(bottom=max(0.3 * smallest, 0.01 * self.error))
        plain_log(axes)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)

    def _draw_sizes(self, axes: Axes) -> None:
        names = [need.learner for need in self.needs]
        for i, need in enumerate(self.needs):
            color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
            if need.reached and need.measured is not None:
                value, low, high, _ = need.measured
                # an interval without upper end is drawn to the largest size that was tried
                bars = [[value - low], [max(min(high, self.n_max), value) - value]]
                axes.errorbar([value], [i], xerr=bars, fmt=marker, color=color, capsize=3)
            else:
                text = f"not by n = {self.n_max}" if need.measured is not None else need.note
                # x in shares of the panel, y in rows
                axes.text(0.98, i, text, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=7)
            if need.theory and math.isfinite(need.theory.n):
                axes.plot([need.theory.n] * 2, [i - 0.3, i + 0.3], color=color, linewidth=2)
        if self.floor:
            axes.axvline(self.floor.n, color="#999999", linestyle="--", linewidth=1)
        low, high = _range(self)
        axes.set(xscale="log", xlim=(low, high), xlabel="examples needed (bar: theory; point: simulation, 95 %)")
        plain_log(axes)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.set_ylim(len(names) - 0.5, -0.5)  # the first learner on top


def _range(plan: Plan) -> tuple[float, float]:
    """Sizes to show: a factor around all that were needed, or all that were tried."""
    measured = [x for need in plan.needs if need.measured for x in need.measured[:3] if need.reached]
    predicted = [need.theory.n for need in plan.needs if need.theory]
    sizes = [x for x in (*measured, *predicted) if math.isfinite(x)] or [1, plan.n_max]
    return min(sizes) / 3, max(sizes) * 3


def _draw_forecast(axes: Axes, forecast: Forecast, n_max: int, **options: Any) -> None:
    order = np.argsort(forecast.sizes)
    n, error = np.array(forecast.sizes)[order], np.array(forecast.errors)[order]
    # theory was asked further than the simulation goes; zero has no place on a logarithmic axis
    shown = (n <= n_max) & np.isfinite(error) & (error > 0)
    line(axes, n[shown], error[shown], **options)


def _plain(value: Any) -> Any:
    """JSON types of dataclasses, tuples and numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    # before Sequence, which a named tuple is as well
    if isinstance(value, Estimate):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
