"""Things of your own in one file: the commands of attnlab take it as ``--module examples/own.py``."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from attnlab import lab
from attnlab.common.drawing import line, panels, points
from attnlab.common.reference import Reference
from attnlab.common.seeds import stream
from attnlab.common.statistics import mean, of, ratio_of_means
from attnlab.common.stopping import ended


@lab.add
@dataclass(frozen=True)
class Linear:
    """y = <w, x> + noise with one Gaussian token x and |w| = 1; the task owns the truth w."""

    d: int = 8
    noise_std: float = 0.5
    seed: int = 0

    @property
    def w(self):
        w = stream(self.seed, "plant", "own.Linear").standard_normal(self.d)
        return w / np.linalg.norm(w)

    def sample(self, n, seed=0):
        rng = stream(seed, "data", "own.Linear")
        X = rng.standard_normal((n, 1, self.d))
        return X, X[:, 0] @ self.w + self.noise_std * rng.standard_normal(n)


@lab.add
class LeastSquares(RegressorMixin, BaseEstimator):
    """The shortest vector that fits best. A learner that must know the noise would say needs = ("noise_std",)."""

    def fit(self, X, y):
        self.coef_ = np.linalg.lstsq(X[:, 0], y, rcond=None)[0]
        ended(self, converged=True, reason="closed form")
        return self

    def predict(self, X):
        return X[:, 0] @ self.coef_


@lab.add
def risk(n: int, d: int = 8, noise_std: float = 0.5) -> float:
    r"""Test error of least squares, :math:`\sigma^2 (1 + d/(n - d - 1))` for n > d + 1.

    Source: the mean of an inverse Wishart matrix.  Status: exact.
    """
    return noise_std**2 * (1 + d / (n - d - 1)) if n > d + 1 else np.inf


@lab.add
def third_key(query, keys):
    """A part of a law: a target for rfa.Task, in a request ``target = "own.third_key"``."""
    return keys[:, 2, 0]


def predicted(task, learner, n):
    """What theory says of the learner; None where it does not reach."""
    return risk(n, task.d, task.noise_std) if n > task.d + 1 else None


lab.add(Reference("theory", Linear, "exact", predicted, LeastSquares))


def draw(records):
    canvas, ((axes,),) = panels()
    points(axes, records.curve("n_train", "mse"), label="least squares")
    curve = records.curve("n_train", "theory.theory")
    line(axes, curve.x, curve.mean, label="theory")
    axes.set(xlabel="examples n", ylabel="test error", xscale="log", yscale="log")
    axes.legend()
    return canvas


GRID = {"task": Linear, "task.d": 8, "task.noise_std": 0.5, "learner": LeastSquares, "n_train": [20, 50, 200]}
lab.add(
    lab.Figure(
        name="own.linear",
        title="Least squares follows its exact risk",
        paper="derived here",
        shows="Points: simulation. Line: the exact risk of the law that is simulated.",
        scales={"quick": [lab.Trials(GRID, seeds=20)]},
        run=lab.run_spec,
        draw=draw,
    )
)
lab.add(
    lab.Claim(
        id="own.exact",
        says="The test error of least squares is the exact risk",
        source="derived here",
        statistic=ratio_of_means(of("mse", n_train=50), of("theory.theory", n_train=50)),
        holds=lab.between(0.85, 1.15),
        because="a replicate scatters by 8 % (test set 4.5 %, fit 6.7 %), 20 of them by 2 %: the interval is ±4 %",
        kind="exploratory",
    ),
    figure="own.linear",
)
lab.add(
    lab.Claim(
        id="own.noise",
        says="With many examples the noise alone is left",
        source="derived here",
        statistic=mean(of("mse", n_train=200)),
        holds=lab.at_most(0.3),
        because="the exact risk is 0.26",
    ),
    figure="own.linear",
)
