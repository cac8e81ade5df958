r"""How complex a target is for each model: the smallest E|v(W)|^2 of infinitely many heads that represent it.

==========  =========================================================================================
symbol      meaning
==========  =========================================================================================
f_rs        symmetrised coefficient tensor of degree r in the query and s in a key
beta_rs     price of |f_rs|_F^2 for attention, beta'_rs for a random-feature MLP
C_k         price in the paper's theorem, k^4.5 4^k
lam_ab      eigenvalue of the pair kernel on harmonics of degree a (query) and b (key)
B           complexity: sample complexity is B / eps^2 up to logarithms
==========  =========================================================================================
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, one_of, real
from attnlab.rfa.series import relu_coefficients
from attnlab.rfa.task import Task
from attnlab.rfa.theory.brfa import dimension_free_cost
from attnlab.rfa.theory.spectrum import mode_parts

TERMS = 400
MODELS = ("rfa", "brfa", "rfmlp")


def beta(r: int, s: int) -> float:
    r"""Price of a term :math:`\langle x_0^{\otimes r} \otimes x_i^{\otimes s}, f_{rs}\rangle`: B <= beta_rs |f_rs|_F^2.

    .. math:: 1/\beta_{rs} = \sum_k c_k^2\, 4^{-k} \binom{k}{r}\binom{k+1}{s}

    Source: derived here, for tokens on the unit sphere.  Status: bound, tight as d grows.

    >>> round(beta(0, 2), 2)
    12.87
    """
    r, s = integer("r", r, low=0), integer("s", s, low=0)
    k = np.arange(TERMS)
    terms = relu_coefficients(TERMS - 1) * 4.0**-k * special.comb(k, r) * special.comb(k + 1, s)
    return float(1 / terms.sum())


def beta_mlp(r: int, s: int, n_keys: int) -> float:
    r"""The same price for a random-feature MLP on the concatenated tokens.

    B <= beta'_rs |f_rs|^2 / N for an average over keys, without 1/N for a function of the query (s = 0).

    .. math:: 1/\beta'_{rs} = \sum_{k \ge r+s} c_k^2\, (N+2)^{-k}\, \frac{k!}{r!\,s!\,(k-r-s)!}

    Source: derived here, for tokens on the unit sphere.  Status: bound, tight as d grows.

    >>> round(beta_mlp(0, 1, n_keys=16), 2)
    69.54
    """
    r, s, n_keys = integer("r", r, low=0), integer("s", s, low=0), integer("n_keys", n_keys, low=1)
    k = np.arange(TERMS)
    multinomial = special.comb(k, r + s) * special.comb(r + s, s)
    return float(1 / np.sum(relu_coefficients(TERMS - 1) * (n_keys + 2.0) ** -k * multinomial))


def paper_coefficient(k: int, model: str = "rfa") -> float:
    r"""The price C_k of the paper's theorems: :math:`k^{4.5} 4^k \vee 1` for RFA, :math:`(2k+2)!!\,4^k` for BRFA.

    Source: arXiv:2307.11353, theorems on RFA and biased RFA (as far as known to us).  Status: bound, up to a constant.

    >>> [round(paper_coefficient(k)) for k in range(4)]
    [1, 4, 362, 8979]
    """
    k = integer("k", k, low=0)
    if one_of("model", model, ("rfa", "brfa")) == "brfa":
        return float(special.factorial2(2 * k + 2) * 4.0**k)
    return float(max(k**4.5 * 4.0**k, 1.0))


def tensors(task: Task) -> dict[tuple[int, int], float]:
    """Frobenius norms of the symmetrised coefficient tensors, by degrees (r, s)."""
    if task.token_law != "sphere":
        raise ValueError(
            f"complexities are known for unit tokens, where scores have variance one: token_law='sphere', "
            f"got {task.token_law!r}"
        )
    return task.function.tensors(task)


def complexity(task: Task, model: str = "rfa", *, form: str = "closed") -> Prediction:
    r"""B(f*) from the coefficient tensors of the target.

    ``form="closed"``: :math:`(\sum_{rs} \sqrt{\beta_{rs}}\,\|f_{rs}\|)^2`, for ``rfa`` and ``rfmlp``.
    ``form="paper"``: :math:`\sum_k C_k \sum_{\max(r,s)=k} \|f_{rs}\|^2` for ``rfa``; for ``brfa``
    :math:`C_q^2` for correlation targets :math:`\langle x_0, x_i\rangle^q G` with :math:`\|G\| = 1`.

    Source: closed form derived here; paper's form arXiv:2307.11353, Theorem 1.  Status: bound.

    >>> round(complexity(Task(target="corr_power", q=1, d=64)), 1)
    347.8
    """
    one_of("model", model, MODELS)
    if one_of("form", form, ("closed", "paper")) == "paper":
        return Prediction(_paper_complexity(task, model), status="bound")
    if model == "brfa":
        raise ValueError("BRFA has no closed form; use form='paper' or complexity_approx(task, 'brfa', eps)")
    roots = 0.0
    for (r, s), norm in tensors(task).items():
        price = beta(r, s) if model == "rfa" else beta_mlp(r, s, task.n_keys) / (task.n_keys if s else 1)
        # Representations of the terms are added: so are their norms, at most.
        roots += np.sqrt(price) * norm
    return Prediction(float(roots**2), status="bound")


def _paper_complexity(task: Task, model: str) -> float:
    if model == "rfa":
        return float(sum(paper_coefficient(max(rs)) * norm**2 for rs, norm in tensors(task).items()))
    if model == "rfmlp":
        raise ValueError("the paper's form is for rfa and brfa; got 'rfmlp'")
    return paper_coefficient(_correlation_power(task), "brfa") ** 2


def _correlation_power(task: Task) -> int:
    power = task.function.correlation_power
    if power is None or task.token_law != "sphere":
        raise ValueError(
            "for brfa the target is a power of <x_0, x_i> with unit tokens, correlation or corr_power; got "
            f"{task.target!r} with token_law={task.token_law!r}"
        )
    return power


def complexity_exact(task: Task, model: str = "rfa") -> Prediction:
    r"""B(f*) on the sphere: the squared norm of f* in the kernel's Hilbert space.

    .. math:: B = \sum_{ab} \|F_{ab}\|^2 / \lambda_{ab}

    Source: derived here.  Status: exact for tokens uniform on the sphere (``rfa``, ``rfmlp``).

    >>> round(complexity_exact(Task(target="key_power", p=2)), 1)
    11.9
    """
    one_of("model", model, ("rfa", "rfmlp"))
    energy, parts = modes(task, model)
    return Prediction(float(np.sum(energy / parts.sum(axis=0))))


def modes(task: Task, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Energies of f* (not F) and eigenvalues of the full model by class of features, one per pair of degrees."""
    # What depends on a key averages out over N independent keys; a function of the query does not.
    energy = np.array([e / (task.n_keys if b else 1) for (_, b), e in task.energies.items()])
    return energy, np.stack([mode_parts(a, b, task.d, task.n_keys, model) for a, b in task.energies], axis=1)


def complexity_approx(task: Task, model: str = "rfa", *, eps: float = 0.1) -> Prediction:
    r"""The smallest squared norm of a pair function within relative squared error eps of F, in L2 of (x_0, x_i).

    For ``rfa`` and ``rfmlp`` each harmonic is shrunk by :math:`\lambda_{ab}/(\lambda_{ab}+\kappa)`. For ``brfa`` the
    target is ``correlation`` or ``corr_power``, a power of :math:`t = \langle x_0, x_i\rangle` with or without the
    factor :math:`\langle b, x_i\rangle` (which a value vector supplies at no cost), and the class is the dimension-free
    one, :math:`F(t) = \sum_k b_k \mu_k(t)` at the price :math:`\sum_k k!\,4^k b_k^2` (see
    :mod:`attnlab.rfa.theory.brfa`).

    Source: derived here.  Status: exact for the class named; infinite where 60 terms of it cannot come that close.
    """
    eps = real("eps", eps, low=0, high=1, open_low=True, open_high=True)
    if one_of("model", model, MODELS) == "brfa":
        power = _correlation_power(task)
        found = dimension_free_cost(lambda t: t**power, task.d, eps)
        return Prediction(found.value, converged=found.converged, detail={"residual": found.residual})
    energy, parts = modes(task, model)
    # From the average over keys back to the pair function: the key's part of both is larger by N.
    scale = np.array([task.n_keys if b else 1.0 for _, b in task.energies])
    energy, eigenvalue = energy * scale, parts.sum(axis=0) * scale

    def excess(log_kappa: float) -> float:
        shrunk = np.exp(log_kappa) / (eigenvalue + np.exp(log_kappa))
        return float(np.sum(energy * shrunk**2) - eps * np.sum(energy))

    # Beyond 40 e-folds all modes are kept or dropped to rounding: the root lies between.
    span = np.log(eigenvalue.min()) - 40, np.log(eigenvalue.max()) + 40
    kappa = np.exp(optimize.brentq(excess, *span, xtol=1e-12))
    return Prediction(float(np.sum(energy * (eigenvalue / (eigenvalue + kappa)) ** 2 / eigenvalue)))


def complexity_sampled(K: np.ndarray, y: np.ndarray, ridge: float) -> Prediction:
    r"""Squared norm of the ridge fit to a dense noiseless sample, for any kernel and target.

    .. math:: y^T (K+n\lambda I)^{-1} K (K+n\lambda I)^{-1} y

    Source: standard.  Status: bound from below that grows to B as n grows and the ridge falls.
    """
    alpha = np.linalg.solve(K + len(y) * ridge * np.eye(len(y)), y)
    return Prediction(float(alpha @ K @ alpha), status="bound")


def witness_degree(r: int, s: int) -> tuple[int, float]:
    r"""The degree k in W at which :math:`3^k\beta^{(k)}_{rs}` is least, and the price there.

    .. math:: \beta^{(k)}_{rs} = 4^k \Big/ c_k^2 \binom kr \binom{k+1}s

    Source: derived here.  Status: exact.

    >>> witness_degree(0, 2)
    (1, 16.0)
    """
    r, s, k = integer("r", r, low=0), integer("s", s, low=0), np.arange(60)
    weight = relu_coefficients(59) * 4.0**-k * special.comb(k, r) * special.comb(k + 1, s)
    # c_k is zero for odd k >= 3, the binomials below the degrees: infinite prices, which are never the least.
    with np.errstate(divide="ignore"):
        best = int(np.argmin(3.0**k / weight))
    return best, float(1 / weight[best])
