r"""How training gets there: the flow of the learned matrix under online gradient descent, solved exactly as d grows.

==========  =========================================================================================
symbol      meaning
==========  =========================================================================================
S = W W^T   student of width kappa d, W iid N(0, sigma^2/d) at the start; S_2 the teacher, spectrum nu
t           4 step n / d after n steps of size ``step`` on the mean loss of a fresh batch
q11, q12    Tr S^2/d and Tr S S_2/d;  q22 = 1 + rho;  t1 = Tr S/d
overlap     p12 = q12 - t1 sqrt(rho): what is learned beyond the trace
Phi         expected loss; Phi11 = dPhi/dq11, Phi12 = (1/2) dPhi/dq12
==========  =========================================================================================

    dS/dt = -(M S + S M) - (gamma/2) S,   M = Phi11 S + Phi12 S_2

is a Riccati equation: S(t) = E W_0 (1 + W_0^T K W_0)^-1 W_0^T E with E = exp(B S_2 - gamma t/4), B = -int Phi12,
K = int 2 Phi11 E^2. A deterministic equivalent leaves scalar integrals over nu. With s = exp(-2 B x + gamma t/2) and u
= K/E^2 at each x: du/dt = 2 Phi11 - (2b x - gamma/2) u, b = -Phi12, zeta (1 + sigma^2 int u/(s + zeta u)) = kappa
sigma^2, t1 = int zeta/(s + zeta u), q12 = int x zeta/(s + zeta u), q11 = int (zeta^2 - zeta' s)/(s + zeta u)^2.

Source: arXiv:2609.03858 (theorem 2: the flow); closure derived here.  Status: asymptotic (d -> infinity, small steps).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import expit

from attnlab.aim.spectrum import check_rho
from attnlab.common.arrays import ArrayLike
from attnlab.common.gaussian import gauss_hermite
from attnlab.common.prediction import Prediction
from attnlab.common.validation import finite_array, integer, nonnegative, one_of, positive

LOSSES = ("squared_output", "cross_entropy", "linear")
NODES = (60, 200)  # fewest and most nodes of the Gaussian averages


@dataclass(frozen=True, eq=False, repr=False)
class LearningFlow(Prediction):
    """The course of training: ``value`` is the error |S - S_2|^2/d at every time.

    Parameters
    ----------
    times : of the entries.
    trace, self_overlap, raw_overlap : t1, q11 and q12.
    overlap : p12 = q12 - t1 t2.
    loss : Phi.
    """

    times: Any = None
    trace: Any = None
    self_overlap: Any = None
    raw_overlap: Any = None
    overlap: Any = None
    loss: Any = None


def potential(q11: float, q12: float, q22: float, loss: str = "squared_output", tokens: int = 2) -> Prediction:
    r"""(Phi, Phi11, Phi12) of a student with these overlaps; D, D^0 Gaussian with covariance 3q, p = sigmoid(D).

    squared_output, :math:`\tfrac12\|\hat y - y\|^2`: :math:`\Phi = 2E(p - p^0)^2`,
    :math:`\Phi_{11} = 6E[\sigma'^2 + (p - p^0)\sigma'']`, :math:`\Phi_{12} = -6E[\sigma'(D)\sigma'(D^0)]`.
    cross_entropy: :math:`2E\,\mathrm{KL}`, 3E sigma'(D), -3E sigma'(D^0). linear (one token, squared index error):
    2(q11 + q22 - 2 q12), 2, -2.

    Source: arXiv:2609.03858; derived here.  Status: exact.

    >>> potential(1.0, 1.0, 1.5).value.round(6)
    array([ 0.078973,  0.177229, -0.164044])
    """
    one_of("loss", loss, LOSSES)
    if q11 < 0 or q22 <= 0 or q12**2 > q11 * q22 * (1 + 1e-9):
        raise ValueError(f"q11, q12, q22 must be positive semidefinite, got {q11}, {q12}, {q22}")
    if loss == "linear":
        return Prediction(np.array([2 * (q11 + q22 - 2 * q12), 2.0, -2.0]))
    if tokens != 2:
        raise ValueError(f"tokens must be 2 for softmax losses, got {tokens}")
    # wide laws see the poles of the sigmoid from nearer: 60 nodes are off by 4e-5 at q = 3
    x, w = gauss_hermite(int(np.clip(50 * max(q11, q22), *NODES)))
    known = np.sqrt(3 * q22) * x[:, None]
    D = q12 / q22 * known + np.sqrt(max(3 * (q11 - q12**2 / q22), 0.0)) * x

    def mean(values: np.ndarray) -> float:
        return float(w @ np.broadcast_to(values, D.shape) @ w)

    p, p0 = expit(D), expit(known)
    slope, slope0 = p * (1 - p), p0 * (1 - p0)
    if loss == "cross_entropy":
        # KL between Bernoulli laws, written so that no logarithm of a small number is taken
        kl = p0 * (known - D) + np.logaddexp(0, D) - np.logaddexp(0, known)
        return Prediction(np.array([2 * mean(kl), 3 * mean(slope), -3 * mean(slope0)]))
    bend = slope * (1 - 2 * p)
    terms = (2 * mean((p - p0) ** 2), 6 * mean(slope**2 + (p - p0) * bend), -6 * mean(slope * slope0))
    return Prediction(np.array(terms))


def _teacher(rho: float, nodes: int, spectrum: Any) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and weights of the teacher: Marchenko-Pastur with its atom at zero, or those given."""
    if spectrum is not None:
        x = finite_array("spectrum", spectrum, ndim=1).astype(float)
        return x, np.full(len(x), 1 / len(x))
    if np.isinf(rho):
        raise ValueError("rho must be finite: S_2 = W_2 W_2^T")
    root = np.sqrt(rho)
    low, high = (1 - root) ** 2 / root, (1 + root) ** 2 / root
    phi = (np.arange(nodes) + 0.5) * np.pi / nodes
    x, half = (low + high) / 2 + (high - low) / 2 * np.cos(phi), (high - low) / 2
    weights = root * (half * np.sin(phi)) ** 2 / (2 * np.pi * x) * np.pi / nodes
    # The null directions of S_2 are unlearned last, as 1/t: without the atom late times are wrong.
    return (np.r_[x, 0.0], np.r_[weights, 1 - rho]) if rho < 1 else (x, weights)


class Flow:
    """Right-hand side of the closed equations, for one student and teacher."""

    def __init__(self, x: np.ndarray, weights: np.ndarray, init: float, width: float, loss: str, decay: float) -> None:
        self.x, self.weights, self.init, self.width, self.loss, self.decay = x, weights, init, width, loss, decay
        self.q22 = float(weights @ x**2)

    def overlaps(self, t: float, B: float, u: np.ndarray) -> tuple[float, float, float]:
        """t1, q11, q12."""
        # far into training s underflows where the teacher has an eigenvalue, harmlessly: there zeta u is all
        # exp overflows at 709; e^690 stands for infinity here.
        s = np.exp(np.clip(-2 * B * self.x + self.decay * t / 2, -690.0, 690.0))
        top = self.width * self.init

        def gap(zeta: float) -> float:
            return zeta * (1 + self.init * float(self.weights @ (u / (s + zeta * u)))) - top

        # gap rises from -top to at least 0; it is 0 at top where u = 0, at the start.
        zeta = float(brentq(gap, 1e-14 * top, top, xtol=1e-15, rtol=1e-14)) if gap(top) > 0 else top
        below = s + zeta * u
        I1, I2 = float(self.weights @ (s / below**2)), float(self.weights @ (u**2 / below**2))
        slope = -(zeta**2 / self.width) * I1 / (1 - (zeta**2 / self.width) * I2)
        t1, q12 = float(self.weights @ (zeta / below)), float(self.weights @ (self.x * zeta / below))
        return t1, float(self.weights @ ((zeta**2 - slope * s) / below**2)), q12

    def potential(self, q11: float, q12: float) -> Any:
        """(Phi, Phi11, Phi12); rounding may take q12 past its largest value."""
        return potential(q11, min(q12, float(np.sqrt(q11 * self.q22))), self.q22, self.loss).value

    def __call__(self, t: float, state: np.ndarray) -> np.ndarray:
        """d(B, u)/dt."""
        B, u = float(state[0]), state[1:]
        _, q11, q12 = self.overlaps(t, B, u)
        _, phi11, phi12 = self.potential(q11, q12)
        return np.asarray(np.r_[-phi12, 2 * phi11 - (-2 * phi12 * self.x - self.decay / 2) * u])


def sgd_flow(
    times: ArrayLike,
    rho: float = 0.5,
    *,
    init: float = 0.7,
    width: float = 1.0,
    loss: str = "squared_output",
    weight_decay: float = 0.0,
    spectrum: ArrayLike | None = None,
    nodes: int = 80,
) -> LearningFlow:
    r"""Overlaps and error along the population gradient flow, or online SGD with small steps, from a random start.

    Parameters
    ----------
    times : sorted, from 0; t = 4 step n/d for S = W W^T and the loss's own scale. For S = W W^T/sqrt(r d) with W of
        order one and steps eta, t = 4 eta n/(d sqrt(r d)).
    init, width : sigma^2 and kappa: W has kappa d columns with entries of variance sigma^2/d.
    loss : ``squared_output`` (half the squared output error), ``cross_entropy``, both for two softmax tokens, or
        ``linear`` (one token).
    weight_decay : gamma, a decay of W by gamma/d in each unit step.
    spectrum : eigenvalues of a given teacher in place of the Marchenko-Pastur law of width rho.

    Source: arXiv:2609.03858 (flow); closure derived here.  Status: asymptotic (d -> infinity, small steps).

    >>> round(float(sgd_flow([0.0, 2.0]).overlap[-1]), 4)
    0.4057
    """
    times = _check_times(times)
    check_rho(rho)
    init, width, decay = positive("init", init), positive("width", width), nonnegative("weight_decay", weight_decay)
    one_of("loss", loss, LOSSES)
    x, weights = _teacher(rho, integer("nodes", nodes, low=8), spectrum)
    flow = Flow(x, weights, init, width, loss, decay)
    start = np.zeros(1 + len(x))
    # A single time t = 0 asks for an interval of length zero.
    end = max(float(times[-1]), 1e-9)
    solved = solve_ivp(flow, (0.0, end), start, method="LSODA", t_eval=times, rtol=1e-9, atol=1e-11)
    rows = [flow.overlaps(t, float(state[0]), state[1:]) for t, state in zip(times, solved.y.T, strict=False)]
    t1, q11, q12 = (np.array(column) for column in zip(*rows, strict=True))
    t2 = float(weights @ x)
    losses = np.array([flow.potential(a, b)[0] for a, b in zip(q11, q12, strict=True)])
    course: dict[str, Any] = {"times": times, "trace": t1, "self_overlap": q11, "raw_overlap": q12, "loss": losses}
    course["overlap"] = q12 - t1 * t2
    return LearningFlow(q11 - 2 * q12 + flow.q22, 0.0, "asymptotic", bool(solved.success), **course)


def _check_times(times: ArrayLike) -> np.ndarray:
    values = finite_array("times", times, ndim=1).astype(float)
    if not len(values) or values[0] < 0 or (np.diff(values) < 0).any():
        raise ValueError(f"times must be sorted numbers >= 0, got {values}")
    return values


def escape_rate(rho: float = 0.5, *, init: float = 0.7, width: float = 1.0, loss: str = "squared_output") -> Prediction:
    r"""dp12/dt at the start, :math:`-2\Phi_{12}t_1 > 0`: no plateau, weak recovery in a time of order one.

    Source: arXiv:2609.03858, equation 17.  Status: exact as d -> infinity.

    >>> round(float(escape_rate()), 6)
    0.208623
    """
    init, width, rho = positive("init", init), positive("width", width), positive("rho", rho)
    t1 = width * init
    _, _, phi12 = potential(init**2 * (width**2 + width), t1 * np.sqrt(rho), 1 + rho, loss).value
    return Prediction(float(-2 * phi12 * t1))


def weak_recovery_time(
    level: float, rho: float = 0.5, *, init: float = 0.7, width: float = 1.0, loss: str = "squared_output"
) -> Prediction:
    """The time at which the overlap p12 reaches ``level`` in (0, 1); infinite beyond t = 300.

    Source: derived here.  Status: asymptotic (d -> infinity, small steps).
    """
    level = positive("level", level)
    for end in (3.0, 30.0, 300.0):  # late times are slow to integrate, and seldom needed
        times = np.r_[0.0, np.geomspace(1e-2, end, 200)]
        path = sgd_flow(times, rho, init=init, width=width, loss=loss).overlap
        if path[-1] >= level:
            after = int(np.argmax(path >= level))
            near = slice(max(after - 3, 0), after + 3)  # neighbours 3 to 5 % apart: a cubic is good to 1e-5
            return Prediction(float(PchipInterpolator(path[near], times[near])(level)), status="asymptotic")
    return Prediction(float("inf"), status="asymptotic")


def matrix_flow(
    S0: np.ndarray, S2: np.ndarray, times: ArrayLike, *, loss: str = "squared_output", weight_decay: float = 0.0
) -> list[np.ndarray]:
    """The d x d flow itself, integrated for given start and teacher: the oracle of the closed equations.

    Source: arXiv:2609.03858, theorem 2.  Status: exact for these matrices.
    """
    d, decay = len(S0), nonnegative("weight_decay", weight_decay)
    S0, S2 = (finite_array(name, S, shape=(d, d)).astype(float) for name, S in (("S0", S0), ("S2", S2)))
    times = _check_times(times)
    q22 = float((S2**2).sum()) / d

    def slope(_: float, flat: np.ndarray) -> np.ndarray:
        S = flat.reshape(d, d)
        q11, q12 = float((S**2).sum()) / d, float((S * S2).sum()) / d
        _, phi11, phi12 = potential(q11, q12, q22, loss).value
        M = phi11 * S + phi12 * S2
        return np.asarray(-(M @ S + S @ M) - decay / 2 * S).ravel()

    solved = solve_ivp(slope, (0.0, float(times[-1])), S0.ravel(), t_eval=times, rtol=1e-7, atol=1e-9)
    return [np.asarray(column).reshape(d, d) for column in solved.y.T]
