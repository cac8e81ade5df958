"""Recovering a multi-head layer: the step against the hardware, recovery against first-order methods, growth."""

from __future__ import annotations

import time

import numpy as np

from attnlab import mha
from attnlab.mha import theory, varpro
from attnlab.mha.layer import Rows, rows_of
from attnlab.mha.levenberg_marquardt import levenberg_marquardt
from benchmarks.baselines.mha import explicit_normal_equations
from benchmarks.harness import Row, exponent, gemm_rate, measure, peak_memory, speed_up


def run() -> list[Row]:
    return [*step_rows(), *recovery_rows(), *size_rows(), *growth_rows(), *sculpting_rows()]


def problem(m: int, d: int, k: int, rows: int) -> tuple[Rows, np.ndarray, varpro.Regression]:
    """Rows of a generic layer and a point near it."""
    task = mha.Task(d=d, k=k, n_heads=m, tokens_law="gaussian")
    data = rows_of(*task.sample(rows // k))
    theta = task.Theta + 0.1 * np.random.default_rng(0).standard_normal(task.Theta.shape)
    return data, theta, varpro.regress(data, theta)


def step_rows() -> list[Row]:
    """One Levenberg-Marquardt step at m = 2, d = 16."""
    m, d, rows = 2, 16, 8000
    data, theta, fit = problem(m, d, 4, rows)
    dgemm = gemm_rate(np.float64)
    seconds = measure(lambda: varpro.normal_equations(data, theta, fit), 7).median
    flops = theory.step_flops(m, d, rows)
    done = flops["assembly"] + flops["rows"] + flops["projection"]
    whole = measure(lambda: levenberg_marquardt(data, theta, max_steps=1), 5).median
    detail = f"m = {m}, d = {d}, {rows} rows, dgemm {dgemm / 1e9:.0f} GFLOP/s"
    direct = flops["direct"] / 2  # a symmetric product needs half the operations
    return [
        Row("mha.step.rate", done / seconds / dgemm, "of dgemm", ">= 0.4", f"operations carried out; {detail}"),
        Row(
            "mha.step.effective",
            direct / seconds / dgemm,
            "of dgemm",
            ">= 0.4",
            f"operations that a symmetric product of the explicit Jacobian would take, in the same time; {detail}",
        ),
        Row("mha.step.seconds", whole, "s", "-", f"whole step with regression and solve; {detail}"),
        speed_up(
            "mha.step.explicit",
            lambda: varpro.normal_equations(data, theta, fit),
            lambda: explicit_normal_equations(data, theta, fit),
            target=">= 3",
            detail=f"against an explicit Jacobian; {detail}",
            repeats=3,
        ),
        Row(
            "mha.step.memory",
            peak_memory(lambda: varpro.normal_equations(data, theta, fit)) / 1e6,
            "MB",
            "< 200",
            f"peak of the assembly; {detail}; the Jacobian alone has {8e-6 * rows * d * m * d * d:.0f} MB",
        ),
    ]


def learners(n_heads: int, seed: int) -> dict[str, tuple[mha.AttentionLearner | mha.GradientLearner, int, str]]:
    """Learner, examples and budget in words."""
    return {
        "race": (
            mha.AttentionLearner(n_heads, starts=("random",), certificate_fraction=0.0, random_state=seed),
            500,
            "<= 12 starts",
        ),
        "lbfgs": (mha.GradientLearner(n_heads, n_starts=4, max_iter=1000, random_state=seed), 500, "4 starts x 1000"),
        "projected": (
            mha.GradientLearner(n_heads, method="projected_lbfgs", n_starts=4, max_iter=1000, random_state=seed),
            500,
            "4 starts x 1000, W projected out",
        ),
        "adam": (
            mha.GradientLearner(n_heads, method="adam", n_starts=2, max_iter=10_000, random_state=seed),
            4000,
            "2 rates x 10000 steps",
        ),
    }


def recovery_rows(seeds: int = 3) -> list[Row]:
    """Time to recover the same layers."""
    rows = []
    for family in ("generic", "close", "weak"):
        for name in learners(2, 0):
            seconds, recovered, text, n = [], 0, "", 0
            for seed in range(seeds):
                task = mha.Task(d=8, k=4, n_heads=2, family=family, seed=seed)
                learner, n, text = learners(2, seed)[name]
                X, y = task.sample(n, seed=100 + seed)
                begun = time.perf_counter()
                learner.fit(X, y)
                seconds.append(time.perf_counter() - begun)
                recovered += mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-3
            detail = f"{family}, m = 2, d = 8, k = 4, n = {n}, {text}: recovered {recovered} of {seeds}"
            rows.append(Row(f"mha.recovery.{family}.{name}", float(np.median(seconds)), "s", "-", detail))
    return rows


def size_rows() -> list[Row]:
    """Sizes that must work, and the time they take."""
    targets = {(2, 8, 4): 5, (2, 16, 4): 40, (1, 30, 8): 120, (3, 10, 4): 40, (4, 8, 4): 40}
    rows = []
    for (m, d, k), limit in targets.items():
        task = mha.Task(d=d, k=k, n_heads=m)
        X, y = task.sample(1000)
        begun = time.perf_counter()
        learner = mha.AttentionLearner(m, starts=("random",), random_state=0).fit(X, y)
        seconds = time.perf_counter() - begun
        error = mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error
        detail = f"m = {m}, d = {d}, k = {k}, n = 1000, head error {error:.0e}"
        rows.append(Row(f"mha.size.{m}.{d}.{k}", seconds, "s", f"< {limit}", detail))
    return rows


def growth_rows() -> list[Row]:
    """Exponents of the assembly in rows, width and heads, beside the theoretical ones."""

    def seconds(m: int, d: int, rows: int) -> float:
        data, theta, fit = problem(m, d, 4, rows)
        return measure(lambda: varpro.normal_equations(data, theta, fit), 3).median

    def theoretical(sizes: list[tuple[int, int, int]], along: list[float]) -> float:
        flops = [theory.step_flops(*size) for size in sizes]
        return exponent(along, [f["assembly"] + f["rows"] + f["projection"] for f in flops])

    sweeps = {
        "rows": [(2, 12, 4000), (2, 12, 8000), (2, 12, 16000)],
        "d": [(2, 12, 4000), (2, 18, 4000), (2, 24, 4000)],
        "m": [(1, 16, 4000), (2, 16, 4000), (4, 16, 4000)],
    }
    place = {"rows": 2, "d": 1, "m": 0}
    made = []
    for name, sizes in sweeps.items():
        along = [float(size[place[name]]) for size in sizes]
        measured = exponent(along, [seconds(*size) for size in sizes])
        predicted = theoretical(sizes, along)
        target, detail = f"theory {predicted:.2f}", f"assembly over {name} = {along}"
        made.append(Row(f"mha.growth.{name}", measured, "exponent", target, detail))
    return made


def sculpting_rows() -> list[Row]:
    """The paper's algorithm end to end."""
    task = mha.Task(d=8, k=2, n_heads=2, rho=2.0)
    X, y = task.sample(30_000)
    begun = time.perf_counter()
    learner = mha.SculptingLearner(2, random_state=0).fit(X, y)
    seconds = time.perf_counter() - begun
    detail = f"m = 2, d = 8, k = 2, n = 30000, span error {mha.span_error(learner.span_, task.Theta):.3f}"
    return [Row("mha.sculpting", seconds, "s", "< 15", detail)]


if __name__ == "__main__":
    for part in (step_rows, size_rows, sculpting_rows, growth_rows, recovery_rows):
        for row in part():
            print(f"{row.name:32s} {row.value:10.3g} {row.unit:10s} {row.target:12s} {row.detail}", flush=True)
