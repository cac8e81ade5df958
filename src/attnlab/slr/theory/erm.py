r"""Learning by empirical risk minimisation from N = alpha D samples: state evolution (arXiv:2509.21936).

=====================  =======================================================================
symbol                 meaning
=====================  =======================================================================
alpha                  samples per dimension
ridge_k, ridge_v       penalties r_k, r_v on k and v
m_k, q_k, V_k          overlap of k with k*, its squared norm (both / D), and its response
m_v, q_v, V_v          the same for v
omega^k, omega^v       cavity fields: the scores and values a new sample would have
g^k, g^v               by how much a sample shifts its own fields
hm, hq, hV             what the data bring: m = hm / (r + hV), q = (hm^2 + hq) / (r + hV)^2, V = 1 / (r + hV)
Delta                  noise_std^2, variance of the output noise
K                      number of informative tokens, whose sum over root K is the output
=====================  =======================================================================

The minimised objective is :math:`\tfrac12\sum_i(y_i - f(X_i))^2 + \tfrac{r_k}{2}|k|^2 + \tfrac{r_v}{2}|v|^2` with
:math:`f(X) = \sigma(Xk/\sqrt D)\cdot Xv/\sqrt D`, k*, v* standard Gaussian and gamma = 1.
"""

from __future__ import annotations

import math

import numpy as np

from attnlab.common.precision import float64
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, positive
from attnlab.slr.activations import Activation, activation_of
from attnlab.slr.task import Task
from attnlab.slr.theory.erm_averages import Draws, compiled, quadrature
from attnlab.slr.theory.follow_up import check, in_any_dimension

ORDER = ("m_k", "q_k", "V_k", "m_v", "q_v", "V_v")
# Gauss-Newton steps for each sample: few while the order parameters move, since each iteration goes on where the last
# ended; enough for a start from afar in the iterations that decide.
FEW, ENOUGH = 3, 15
MEMORY = 4


@in_any_dimension
def erm_state_evolution(
    task: Task,
    activation: str | Activation,
    alpha: float,
    *,
    ridge_k: float = 1.0,
    ridge_v: float = 1.0,
    n_draws: int = 2**13,
    max_iter: int = 300,
    tol: float = 1e-5,
) -> Prediction:
    r"""Order parameters and excess risk of the minimiser of the regularised empirical risk, as D grows.

    .. math:: \hat m_k = \alpha\,\mathbb{E}\sum_l g^k_l\,\partial_l\log g_\nu,\quad
              \hat m_v = \tfrac{\alpha}{\sqrt K}\,\mathbb{E}\sum_{j\in J}\frac{dg^v_j}{dy},\quad
              \hat q = \alpha\,\mathbb{E}\sum_l g_l^2,\quad
              \hat V = -\alpha\,\mathbb{E}\sum_l\frac{dg_l}{d\omega_l}

    where, for one sample, the scores minimise
    :math:`\phi = (y - s\cdot\omega^v)^2/2(1 + V_v|s|^2) + |\chi - \omega^k|^2/2V_k`, :math:`s = \sigma(\chi)`, and
    :math:`g^v = s(y - s\cdot\omega^v)/(1 + V_v|s|^2)`, :math:`g^k = (\chi - \omega^k)/V_k`. Derivatives go through the
    minimiser by the implicit function theorem. The value is the excess risk; ``detail`` has the six order parameters,
    n_iter and the residual, the last relative change of the order parameters.

    ``activation`` : a name or an object of :mod:`attnlab.slr.activations`.

    Source: arXiv:2509.21936, result 5.1 (form); equations derived here.  Status: heuristic (replica-symmetric); checked
    against simulation at ridges of order one. At weak ridges (0.1) only the error is reliable: the k-overlaps come out
    4 to 9 % low.
    """
    found = activation_of(activation)
    check(task, "erm_state_evolution", several=True, lengths=False)
    noise_var = positive("noise_std", task.noise_std) ** 2
    ridges = positive("ridge_k", ridge_k), positive("ridge_v", ridge_v)
    integer("n_draws", n_draws, low=4), integer("max_iter", max_iter, low=1)
    if not task.strength > 0:
        raise ValueError(f"nu must be positive for erm_state_evolution, got {task.strength!r}")
    draws = quadrature(task.law_in_force, task.L, task.locations, int(n_draws))
    return _iterate(found, positive("alpha", alpha), noise_var, ridges, draws, task.locations, max_iter, tol)


@float64
def _iterate(
    activation: Activation,
    alpha: float,
    noise_var: float,
    ridges: tuple[float, float],
    draws: Draws,
    count: int,
    max_iter: int,
    tol: float,
) -> Prediction:
    averages, excess = compiled(activation, count)
    # Away from zero, where m = 0 would be kept by symmetry.
    state, chi = np.full(6, 0.5), draws.chi * 0.5
    residual, n_iter, steps = math.inf, 0, ENOUGH
    past: list[tuple[np.ndarray, np.ndarray]] = []
    while n_iter < max_iter:
        hats, chi = averages(state, chi, draws, noise_var, steps)
        update, n_iter = _order_parameters(alpha * np.asarray(hats), ridges), n_iter + 1
        residual = float(np.max(np.abs(update - state) / np.maximum(1.0, np.abs(state))))
        if residual <= tol and steps == ENOUGH:
            break
        past = [*past, (state, update)][-MEMORY:]
        # The mixture takes the map for linear, which it is near the fixed point only.
        state = _accelerated(past) if residual < 0.1 else 0.5 * (state + update)
        # the first iterations come from afar, the last ones decide
        steps = ENOUGH if n_iter < 2 or residual <= 3 * tol else FEW
    each = np.asarray(excess(state, draws))
    parts = [part.mean() for part in np.array_split(each, 4)]
    error = max(float(np.std(parts, ddof=1) / 2), residual)
    detail = dict(zip(ORDER, map(float, state), strict=True)) | {"n_iter": n_iter, "residual": residual}
    return Prediction(float(each.mean()), error, "heuristic", residual <= tol, detail)


def _accelerated(past: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Anderson's mixture of the last updates, that whose changes cancel best; a plain half step if it is no state."""
    states, updates = (np.array(part) for part in zip(*past, strict=True))
    plain = 0.5 * (states[-1] + updates[-1])
    if len(past) < 2:
        return np.asarray(plain)
    change = updates - states
    # Near the end the changes are nearly parallel; without the cut the mixture would follow their rounding.
    weight = np.linalg.lstsq((change[1:] - change[:-1]).T, change[-1], rcond=1e-8)[0]
    mixed = np.asarray(updates[-1] - (updates[1:] - updates[:-1]).T @ weight)
    m_k, q_k, V_k, m_v, q_v, V_v = mixed
    possible = min(V_k, V_v) > 0 and q_k >= m_k**2 and q_v >= m_v**2
    return mixed if possible else np.asarray(plain)


def _order_parameters(hats: np.ndarray, ridges: tuple[float, float]) -> np.ndarray:
    """(m_k, q_k, V_k, m_v, q_v, V_v) from (hm_k, hq_k, hV_k, hm_v, hq_v, hV_v)."""
    state = []
    for (hm, hq, hV), ridge in zip(hats.reshape(2, 3), ridges, strict=True):
        precision = ridge + hV
        state += [hm / precision, (hm**2 + hq) / precision**2, 1 / precision]
    return np.array(state)
