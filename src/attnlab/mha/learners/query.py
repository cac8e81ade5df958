"""A layer from value queries: the learner chooses the tokens, of one head or of several, with biases or without."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.advice import advise
from attnlab.common.seeds import Seed, stream
from attnlab.common.stopping import ended
from attnlab.common.validation import integer, one_of, positive
from attnlab.mha.layer import attention
from attnlab.mha.learners.base import LayerRegressor
from attnlab.mha.queries import single_head
from attnlab.mha.queries.oracle import Box, Function, Oracle, on_sphere, position_deviation
from attnlab.mha.queries.poles import MOST_HEADS, recover_by_poles
from attnlab.mha.queries.several_heads import Heads, Unseparated, first_direction, recover

ONE_HEAD = ("pairs", "wide", "low_rank")
SEVERAL = ("auto", "reference", "separate", "poles")
_VERIFIED = 64  # random sequences of five tokens on which the layer is compared with the oracle
_COARSEST = 2.0**-7  # twice the rounding error of bfloat16, the least exact answers that repeat
_EXPLAINED = 0.1  # no layer passes that misses more of the answers than this and their noise


class QueryLearner(LayerRegressor):
    """Recover a layer by asking for the outputs of chosen sequences.

    The query token is always the last of a sequence and the last row is read, so that a causal oracle is as good as a
    full one. One head without biases has three methods of its own; several heads are separated by linear equations in
    one direction, labelled in all others, and solved for (:mod:`attnlab.mha.queries`).

    Parameters
    ----------
    d : width of a token.
    n_heads : number of heads; None counts them.
    bias : whether the layer has key biases and a constant.
    rank : rank of the attention matrices, fewer queries when it is small; ``"auto"`` measures it (several heads).
    value_rank : rank to which the recovered projections are cut.
    method : one head: ``pairs``, d + d^2 queries of at most two tokens, any output width; ``wide``, 2 d queries of
        d + 1 tokens, W of full row rank; ``low_rank``, d + 6 r d queries. Several heads, a count or biases:
        ``reference`` (2 m <= d_out, fewest queries), ``separate`` (m <= d_out, smallest errors), ``poles`` (any d_out,
        at most six heads), or ``auto`` (also what ``pairs`` means there): reference from d_out >= 4 m on, then
        separate, then poles.
    extra : points beyond as many as unknowns; more when answers are noisy.
    max_queries : RuntimeError beyond; ``partial_`` then has what is known.
    strength : length of the first tokens.
    random_state : draws directions and points.

    Attributes
    ----------
    theta_, w_, key_bias_, constant_ : the layer; ``n_heads_`` their number.
    n_queries_, n_sent_tokens_ : sequences and tokens the layer was learned from; ``n_check_queries_`` only test it.
    noise_ : root mean square error of an answer.
    residual_ : relative error on fresh sequences of five tokens. Where it is far above the noise the layer is not one
        of these (rotary positions, more heads than asked for): ``converged_`` is False and a warning says so.
    separation_ : of the first direction, singular values, residuals of start and end, check of the sum, rank.
    method_ : the method that was used.

    Examples
    --------
    >>> from attnlab.mha import Task, attention
    >>> task = Task(d=8, k=2, n_heads=3)
    >>> learner = QueryLearner(8, n_heads=None, random_state=0).fit(lambda X: attention(X, task.Theta, task.W))
    >>> learner.n_heads_, learner.residual_ < 1e-9
    (3, True)
    """

    needs = ("d",)

    def __init__(
        self,
        d: int = 2,
        *,
        n_heads: int | None = 1,
        bias: bool = False,
        rank: int | str | None = None,
        value_rank: int | None = None,
        method: str = "pairs",
        extra: int = 8,
        max_queries: int | None = None,
        strength: float = 1.0,
        random_state: Seed = None,
    ) -> None:
        self.d = d
        self.n_heads = n_heads
        self.bias = bias
        self.rank = rank
        self.value_rank = value_rank
        self.method = method
        self.extra = extra
        self.max_queries = max_queries
        self.strength = strength
        self.random_state = random_state

    def fit(self, X: Function, y: None = None) -> QueryLearner:
        """Ask the oracle ``X``, a callable from tokens (n, k, d) to outputs (n, k, d_out)."""
        d = integer("d", self.d, low=1)
        if self.n_heads is not None:
            integer("n_heads", self.n_heads, low=1)
        one_of("method", self.method, (*ONE_HEAD, *SEVERAL))
        integer("extra", self.extra, low=1)
        strength = positive("strength", self.strength)
        if self.rank is not None and self.rank != "auto":
            integer("rank", self.rank, low=1, high=d)
        if not callable(X):
            raise TypeError(f"fit takes an oracle, a callable on tokens (n, k, {d}), got {type(X).__name__}")
        ask, rng = Oracle(X, self.max_queries), stream(self.random_state, "learner", "mha")
        one_head = self.n_heads == 1 and not self.bias and self.method in ONE_HEAD
        heads = self._one_head(ask, strength, rng) if one_head else self._several(ask, strength, rng)
        self.theta_, self.w_, self.key_bias_ = heads.theta, heads.w, heads.key_bias
        if self.value_rank is not None:
            self.w_ = _cut(self.w_, integer("value_rank", self.value_rank, low=1))
        self.n_heads_, self.method_, self.separation_ = len(heads.theta), heads.method, heads.detail
        self.n_queries_, self.n_sent_tokens_, self.n_tokens_ = ask.count, ask.tokens, 2
        self._verify(ask, strength, rng, heads.n_iter)
        self.n_check_queries_ = ask.checks
        return self

    def _one_head(self, ask: Oracle, strength: float, rng: np.random.Generator) -> Heads:
        W = single_head.projection(ask, self.d, strength)
        self.constant_ = np.zeros(W.shape[1])
        if self.method == "pairs":
            theta = single_head.pairs(ask, W, strength)
        elif self.method == "wide":
            theta = single_head.wide(ask, W, strength)
        else:
            if not isinstance(self.rank, int | np.integer):
                raise ValueError("rank must be given as a number for method='low_rank'")
            theta = single_head.low_rank(ask, W, int(self.rank), rng)
        tokens = on_sphere(8, self.d, strength, rng)
        answers = ask(tokens[:, None], check=True)[:, -1]
        self.noise_ = _rms(answers - tokens @ W)
        _warn_of_constant(ask, self.d)
        return Heads(theta[None], W[None], np.zeros((1, self.d)), self.method, 1)

    def _several(self, ask: Oracle, strength: float, rng: np.random.Generator) -> Heads:
        if self.method in ("wide", "low_rank"):
            raise ValueError(f"method={self.method!r} recovers one head without biases; use one of {SEVERAL}")
        box = Box(ask, self.d, strength, self.bias, rng)
        self.constant_, self.noise_ = box.constant, box.noise
        # What is left when max_queries ends the fit.
        self.partial_ = {"constant": box.constant, "w_sum": box.w_sum}
        if not self.bias:
            _warn_of_constant(ask, self.d)
        off = position_deviation(ask, self.d, strength, rng)
        # Exact answers show no noise and still differ by rounding.
        if off > 100 * max(box.noise, 1e-15):
            raise ValueError(
                f"the layer uses positions: answers change by {off:.1e} when tokens other than the query change places "
                f"(error of an answer {box.noise:.1e}); such layers are not recovered"
            )
        method = self._method(box.outputs)
        if method == "poles":
            return recover_by_poles(box, self.n_heads, strength, rng)
        try:
            first = first_direction(box, self.n_heads, strength, rng)
        except Unseparated:
            if method != "auto":
                raise
            return recover_by_poles(box, self.n_heads, strength, rng)
        self.partial_["n_heads"] = m = len(first.B)
        # A small logit t moves a share by t / 4.
        if m == 1 and first.strengths[0] * 0.25 < 10 * box.noise:
            raise ValueError("attention cannot be seen: the answers are linear in the tokens up to their error")
        if method == "auto":
            # A label is read in the span of 2 m vectors: with few outputs these are nearly dependent, and separate
            # is more exact.
            method = "reference" if box.outputs >= 4 * m else "separate"
        # The heads are counted only now: refused where the outputs are too few for them.
        self._method(box.outputs, m)
        return recover(box, first, method=method, rank=self.rank, extra=self.extra, rng=rng)

    def _method(self, outputs: int, m: int | None = None) -> str:
        """The method asked for, refused where the outputs are too few for it."""
        m = m or self.n_heads or 1
        # wide and low_rank are refused before; pairs, the default, means auto here.
        method = "auto" if self.method in ONE_HEAD else self.method
        if method == "reference" and 2 * m > outputs:
            raise ValueError(f"method='reference' needs d_out >= 2 n_heads, got {outputs} and {m}; use 'separate'")
        if method == "separate" and m > outputs:
            raise ValueError(f"method='separate' needs d_out >= n_heads, got {outputs} and {m}; use 'poles'")
        if method == "auto" and m > outputs:
            method = "poles"
        if method == "poles" and m > MOST_HEADS:
            raise ValueError(f"too many heads for d_out = {outputs}: poles separate at most {MOST_HEADS}, got {m}")
        return method

    def _verify(self, ask: Oracle, strength: float, rng: np.random.Generator, n_iter: int) -> None:
        """Compare with the oracle on fresh sequences; a layer of another kind must not pass."""
        # At the length of token that the layer was asked at: longer ones saturate its patterns.
        size = strength if self.separation_ == {} else float(self.separation_["length"])
        tokens = on_sphere(5 * _VERIFIED, self.d, size, rng).reshape(_VERIFIED, 5, self.d)
        answers, again = (ask(tokens, check=True)[:, -1] for _ in range(2))
        found = attention(tokens, self.theta_, self.w_, self.key_bias_, self.constant_)[:, -1]
        scale = max(_rms(answers), np.finfo(float).tiny)
        self.residual_, noise, spread = (x / scale for x in (_rms(found - answers), self.noise_, _rms(answers - again)))
        # What repeats is no noise: beyond the rounding of an answer it is a layer that is not linear in its values.
        if not (affine := noise <= 10 * spread + _COARSEST):
            reason = f"answers to one token are not affine in it: {noise:.1e} of their size is left, and repeats"
        else:
            reason = f"fresh answers are missed by {self.residual_:.1e} of their size"
        # The layer's error is that of an answer times a condition number: 1e3 is the most that passes.
        good = affine and self.residual_ <= min(1e3 * max(noise, 1e-15 / scale), _EXPLAINED + spread)
        ended(self, converged=good, reason="closed form" if good else reason, n_iter=n_iter)


def _rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _warn_of_constant(ask: Oracle, d: int) -> None:
    """Warn when a zero token is answered by a constant; it is asked for several times, as answers may be noisy."""
    answers = ask(np.zeros((8, 1, d)), check=True)[:, -1]
    size, spread = float(np.abs(answers.mean(axis=0)).max()), float(answers.std(axis=0).max())
    if size > 4 * spread + 1e-12:
        advise(f"the oracle answers {size:.1e} to a zero token; bias=True fits", stacklevel=5)


def _cut(w: np.ndarray, rank: int) -> Any:
    """Projections of the given rank that are nearest to w."""
    left, sizes, right = np.linalg.svd(w, full_matrices=False)
    return (left[..., :rank] * sizes[:, None, :rank]) @ right[:, :rank]
