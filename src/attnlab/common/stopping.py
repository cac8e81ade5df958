"""How a fit ended, as data that travels with the learner."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from attnlab.common.advice import advise


def ended(learner: Any, *, converged: bool, reason: str, n_iter: int = 1) -> None:
    """Set ``converged_``, ``n_iter_`` and ``stop_reason_``; a fit that did not converge also warns the user.

    The lab reads the attributes. The warning is for interactive use, where they are easily overlooked.

    Parameters
    ----------
    reason : a short phrase, such as ``closed form``, ``tolerance reached``, ``max_iter reached`` or ``diverged``.
    """
    learner.converged_ = bool(converged)
    learner.n_iter_ = int(n_iter)
    learner.stop_reason_ = reason
    if not converged:
        name = type(learner).__name__
        advise(f"{name} did not converge: {reason} ({n_iter} iterations)", ConvergenceWarning, stacklevel=3)
