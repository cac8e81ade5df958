r"""Online stochastic gradient descent: every sequence is used once, so that training follows the population flow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlab.aim.channels import Channel
from attnlab.aim.learners.prediction import IndexedPredictor
from attnlab.aim.task import Task
from attnlab.common.advice import advise
from attnlab.common.seeds import Seed, branch, seed_sequence, stream
from attnlab.common.stopping import ended
from attnlab.common.validation import integer, nonnegative, positive

LARGE = 0.5  # step d / batch beyond which the noise of the steps adds a random part to S
LOGS = 40  # entries of the trace


class OnlineSGD(IndexedPredictor):
    r"""Gradient steps without momentum on fresh batches, for tied self-attention.

    With :math:`S = WW^T`,

    .. math:: W \leftarrow W - \epsilon\nabla_W \tfrac1B\sum_{\mu\in\mathrm{batch}}\ell^\mu
              - \tfrac{\epsilon\gamma}{d}W, \qquad t = 4\epsilon\,\mathrm{steps}/d

    :func:`attnlab.aim.theory.sgd_flow` predicts overlap and error at time t for steps with step d / batch << 1
    (arXiv:2609.03858).

    Parameters
    ----------
    width : columns of W.
    loss : ``squared_output`` (here half of |y_hat - y|^2) or ``cross_entropy``.
    step, batch_size : epsilon, and sequences in each step.
    init : sigma^2, the start W is iid N(0, sigma^2/d).
    weight_decay : gamma.
    channel : as in :class:`attnlab.aim.Task`.

    Attributes
    ----------
    S_, W_ : the learned matrix and its factor.
    trace_ : arrays ``time`` and ``self_overlap`` Tr S^2/d; with a task ``overlap`` p12 and ``value`` |S - S_2|^2/d.
    converged_, n_iter_, stop_reason_ : all sequences were used and W is finite.

    >>> from attnlab import aim
    >>> model = aim.OnlineSGD(20, step=0.1, batch_size=64, random_state=1).fit(aim.Task(20, seed=1), 2.0)
    >>> bool(model.trace_["overlap"][-1] > 0.2)
    True
    """

    needs = ("width", "channel")
    prediction, tied, attention, mask = "plug-in", True, "self", "full"

    def __init__(
        self,
        width: int,
        loss: str = "squared_output",
        *,
        step: float = 0.3,
        batch_size: int = 256,
        init: float = 0.7,
        weight_decay: float = 0.0,
        channel: str | Channel = "softmax",
        random_state: Seed = None,
    ) -> None:
        self.width = width
        self.loss = loss
        self.step = step
        self.batch_size = batch_size
        self.init = init
        self.weight_decay = weight_decay
        self.channel = channel
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> OnlineSGD:
        """One pass over sequences X and outputs y; or ``fit(task, time)``: fresh sequences of a task up to a time."""
        self.law.check_loss(self.loss)
        batch, step = integer("batch_size", self.batch_size, low=1), positive("step", self.step)
        task = X if isinstance(X, Task) else None
        if task is not None:
            if not (task.tied and task.mask == "full"):
                raise ValueError("OnlineSGD learns tied self-attention with mask='full'")
            n_steps, d = round(positive("time", y) * task.d / (4 * step)), task.d
            # One sequence sets tokens_ and checks the channel; the batches are drawn one by one.
            self._check_data(*task.sample(1))
            fresh = _fresh(task, n_steps, batch, self.random_state)
            batches: Iterator[tuple[np.ndarray, np.ndarray]] = ((X, self._target(y)) for X, y in fresh)
        else:
            X, _ = self._check_data(X, y)
            target = self._target(y)
            n_steps, d = math.ceil(len(X) / batch), X.shape[2]
            batches = iter([(X[i : i + batch], target[i : i + batch]) for i in range(0, len(X), batch)])
        if step * d / batch > LARGE:
            advise(f"step d / batch = {step * d / batch:.2g} is above {LARGE}: the flow of small steps does not apply")
        self._train(batches, n_steps, d, None if task is None else task.S)
        return self

    def _target(self, y: Any) -> np.ndarray:
        """What the loss compares with: the measured logits, or the outputs."""
        y = np.asarray(y, dtype=float)
        return self.law.summary(y, self.layout_) if self.loss == "logits" else y

    def _train(self, batches: Iterator[tuple[np.ndarray, np.ndarray]], n_steps: int, d: int, truth: Any) -> None:
        spread = np.sqrt(positive("init", self.init) / d)
        shape = (d, integer("width", self.width, low=1))
        W = spread * stream(self.random_state, "learner", "aim", "start").standard_normal(shape)
        shrink = 1 - self.step * nonnegative("weight_decay", self.weight_decay) / d
        logged = set(np.linspace(0, n_steps, min(LOGS, n_steps) + 1).astype(int).tolist())
        entries = [_state(0.0, W, truth)]
        for done, (X, y) in enumerate(batches, start=1):
            W = shrink * W - self.step * self._slope(X, y, W)
            if done in logged:
                entries.append(_state(4 * self.step * done / d, W, truth))
            if not np.isfinite(W).all():
                break
        self.W_, self.S_ = W, W @ W.T
        self.trace_ = {name: np.array([entry[name] for entry in entries]) for name in entries[0]}
        finite = bool(np.isfinite(W).all())
        ended(
            self, converged=finite, reason="all steps made" if finite else "diverged; a smaller step helps", n_iter=done
        )

    def _slope(self, X: np.ndarray, y: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Gradient of the mean loss of a batch in W."""
        n, tokens, d = X.shape
        P = (X.reshape(-1, d) @ W).reshape(n, tokens, -1)
        # Tr S = |W|^2 centres the diagonal.
        h = (P @ P.swapaxes(1, 2) - (W**2).sum() * np.eye(tokens)) / np.sqrt(d)
        _, H = self.law.loss_and_slope(self.loss, h, y, self.layout_)
        H = H + H.swapaxes(1, 2)
        # the flow's potential is that of half the squared error
        scale = (0.5 if self.loss == "squared_output" else 1.0) / (n * np.sqrt(d))
        pulled = X.reshape(-1, d).T @ (H @ P).reshape(n * tokens, -1)
        # The trace of the doubled H has the 2 of the gradient 2 W of |W|^2.
        return np.asarray(scale * (pulled - np.trace(H.sum(axis=0)) * W))


def _fresh(task: Task, n_steps: int, batch: int, seed: Seed) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    root = seed_sequence(seed)
    return (task.sample(batch, branch(root, f"batch {i}")) for i in range(n_steps))


def _state(time: float, W: np.ndarray, truth: np.ndarray | None) -> dict[str, float]:
    """Overlaps of S = W W^T per dimension."""
    S, d = W @ W.T, len(W)
    found = {"time": time, "self_overlap": float((S**2).sum() / d)}
    if truth is not None:
        raw = float((S * truth).sum() / d)
        found["overlap"] = raw - float(np.trace(S) * np.trace(truth)) / d**2
        found["value"] = float(((S - truth) ** 2).sum() / d)
    return found
