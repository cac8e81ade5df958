r"""Cross-entropy, or another loss of logit differences, with weight decay, two tied tokens: six scalars.

==========  =========================================================================================
symbol      meaning
==========  =========================================================================================
D, D^0      logit differences (h_11 - h_12, h_22 - h_12) of student and teacher, covariance C = [[3, 1], [1, 3]] times
            [[q, m], [m, Q_0 (+ noise)]]
D*          argmin over D of sum_i loss(D_i, D^0_i) + (D - D_w)^T C^-1 (D - D_w) / (2V)
q, m, V     overlaps and susceptibility of the student;  g = (z* - w)/V
eta         m_hat / chi_hat, blur delta = sqrt(q_hat)/m_hat, threshold eps = 2 lambda / m_hat
==========  =========================================================================================

    q_hat = 2 alpha E|g|^2,  chi_hat = -2 alpha E div_w g,  m_hat = 2 alpha E div_z0 g
    V = df / chi_hat,  q = eta^2 J,  m = eta O

Source: arXiv:2509.24914, claims 3.1 and 4.1; channel derived here.  Status: asymptotic, quadrature.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from attnlab.aim.channels import NotSolved
from attnlab.aim.task import Task
from attnlab.aim.theory.erm import ERM
from attnlab.aim.theory.soft_threshold import thresholded
from attnlab.common.gaussian import gauss_hermite

NODES = 16
NEGLIGIBLE = 1e-13  # weights of nodes that are dropped
C_INVERSE = np.array([[3.0, -1.0], [-1.0, 3.0]]) / 8
MAX_ITER, TOL = 300, 1e-9


class Loss(NamedTuple):
    """A convex loss of one logit difference D against the teacher's D^0, the same for (-D, -D^0): its derivatives, and
    the error that is reported.
    """

    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray], np.ndarray]
    mixed: Callable[[np.ndarray], np.ndarray]  # d^2 loss / dD dD^0
    error: Callable[[np.ndarray, np.ndarray], np.ndarray]


def cross_entropy(beta: float) -> Loss:
    """Of the rows (sigmoid(beta D), 1 - sigmoid(beta D)); the error is |y - y_hat|^2 of a row."""

    def p(D: np.ndarray) -> np.ndarray:
        return np.asarray(expit(beta * D))

    return Loss(
        lambda D, D0: beta * (p(D) - p(D0)),
        lambda D: beta**2 * p(D) * (1 - p(D)),
        lambda D0: -(beta**2) * p(D0) * (1 - p(D0)),
        lambda D, D0: 2 * (p(D) - p(D0)) ** 2,
    )


class Channel:
    """Averages over the four Gaussian directions, with the minimiser of the last call as the next start."""

    def __init__(self, total: float, loss: Loss, nodes: int) -> None:
        # An odd rule has nodes at 0, on the border of the quarter that stands for all.
        if nodes % 2:
            raise ValueError(f"nodes must be even, got {nodes}")
        x, w = gauss_hermite(nodes)
        points = np.stack(np.meshgrid(x, x, x, x, indexing="ij"), axis=-1).reshape(-1, 4)
        weights = functools.reduce(np.multiply.outer, [w] * 4).ravel()
        # Signs of both sums, or of both differences, may be changed: rows may be exchanged, and all D negated.
        kept = (weights > NEGLIGIBLE) & (points[:, :2] > 0).all(axis=1)
        self.points, self.weights = points[kept], weights[kept] / weights[kept].sum()
        self.total, self.loss = total, loss
        self.D: Any = None

    def means(self, q: float, m: float, V: float) -> tuple[float, float, float, float]:
        """E|g|^2, E div_w g, E div_z0 g, and the training error."""
        spread = np.sqrt([4.0, 2.0])  # of (D_1 + D_2)/sqrt 2 and (D_1 - D_2)/sqrt 2, in units of the indices
        teacher = np.sqrt(self.total) * self.points[:, :2]
        student = m / self.total * teacher + np.sqrt(max(q - m**2 / self.total, 0.0)) * self.points[:, 2:]
        D0, Dw = (_unrotated(values * spread) for values in (teacher, student))
        D = self._minimiser(D0, Dw, V)
        inverse, mixed = _inverse(self.loss.curvature(D), V), self.loss.mixed(D0)
        step = D - Dw
        square = np.einsum("ni,ij,nj->n", step, C_INVERSE, step) / V**2
        student_slope = (np.einsum("nij,ji->n", inverse, C_INVERSE) / V - 2) / V
        teacher_slope = -(inverse[:, 0, 0] * mixed[:, 0] + inverse[:, 1, 1] * mixed[:, 1]) / V
        train = self.loss.error(D, D0).sum(axis=1)
        return tuple(float(self.weights @ v) for v in (square, student_slope, teacher_slope, train))  # type: ignore[return-value]

    def _minimiser(self, D0: np.ndarray, Dw: np.ndarray, V: float) -> np.ndarray:
        D = Dw.copy() if self.D is None else self.D
        for _ in range(60):
            slope = self.loss.slope(D, D0) + (D - Dw) @ C_INVERSE / V
            step = np.einsum("nij,nj->ni", _inverse(self.loss.curvature(D), V), slope)
            D = D - np.clip(step, -4.0, 4.0)  # the loss is convex; long first steps are cut
            if np.abs(step).max() < 1e-11:
                break
        self.D = D
        return D


def _inverse(curvature: np.ndarray, V: float) -> np.ndarray:
    """(diag(curvature) + C^-1 / V)^-1, (n, 2, 2)."""
    a, d, b = curvature[:, 0] + C_INVERSE[0, 0] / V, curvature[:, 1] + C_INVERSE[1, 1] / V, C_INVERSE[0, 1] / V
    determinant = a * d - b**2
    off = -b / determinant
    return np.stack([np.stack([d / determinant, off], -1), np.stack([off, a / determinant], -1)], axis=-2)


def _unrotated(values: np.ndarray) -> np.ndarray:
    """(D_1, D_2) from ((D_1 + D_2)/sqrt 2, (D_1 - D_2)/sqrt 2)."""
    both = np.stack([values[:, 0] + values[:, 1], values[:, 0] - values[:, 1]], axis=-1)
    return np.asarray(both / np.sqrt(2))


def solve_cross_entropy(task: Task, alpha: float, decay: float, nodes: int = NODES) -> ERM:
    """The minimiser of the cross-entropy with decay."""
    if task.layout.queries != 2 or not task.tied or not task.layout.visible.all() or not hasattr(task.law, "beta"):
        raise NotSolved("loss='cross_entropy' is solved for softmax with tokens=2, tied, mask='full'")
    return solve_six_scalars(task, alpha, decay, cross_entropy(float(task.law.beta)), nodes)


def solve_six_scalars(task: Task, alpha: float, decay: float, loss: Loss, nodes: int = NODES) -> ERM:
    """Iterate the six scalars of a loss that is a sum over both rows, half of each step."""
    Q = task.prior.second_moment(task.rho)
    channel = Channel(Q + task.law.noise, loss, nodes)
    q, m, V, change, found = 0.5 * Q, 0.5 * Q, 1.0, np.inf, None
    eta = delta = eps = train = 0.0
    for _ in range(MAX_ITER):
        square, student, teacher, train = channel.means(q, m, V)
        q_hat, chi_hat, m_hat = 2 * alpha * square, -2 * alpha * student, 2 * alpha * teacher
        eta, delta, eps = m_hat / chi_hat, np.sqrt(q_hat) / m_hat, 2 * decay / m_hat
        found = thresholded(delta, eps, task.rho, task.prior)
        new = np.array([eta**2 * found.J, eta * found.O, found.df / chi_hat])
        change = float(np.abs(new / np.array([q, m, V]) - 1).max())
        q, m, V = (0.5 * new + 0.5 * np.array([q, m, V])).tolist()
        if change < TOL:
            break
    assert found is not None
    value = q - 2 * m + Q
    shown = {"scale": eta, "blur": delta, "threshold": eps, "dof": found.df, "rank": found.rank}
    rest = {"overlap": m, "self_overlap": q, "trace": eta * found.trace, "train_loss": train}
    return ERM(value, 0.0, "asymptotic", change < TOL, {"V": V}, **shown, **rest)
