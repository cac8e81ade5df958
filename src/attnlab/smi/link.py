r"""A link: how the outputs of one sequence depend on its indices z = X W^T / sqrt(d).

======  ==============  =============================================================================
symbol  shape           meaning
======  ==============  =============================================================================
z       (T, r)          indices of one sequence, rows N(0, I_r) as d grows
y       any             output of the sequence
omega   (T, r)          mean of z given the current estimate of W
V       (r, r)          covariance of each row of z given that estimate
======  ==============  =============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.common.validation import integer, one_of

SYMMETRIES = ("none", "sign", "joint_sign", "permutation", "hyperoctahedral", "orthogonal")
GRID_LIMIT = 3  # dimensions of a tensor grid
POINTS_LIMIT = 12  # dimensions of importance sampling
FREE_LIMIT = 8  # free coordinates of a level set
FUNCTIONS = ("sample", "log_partition", "solve", "log_density", "mean", "indices", "read_outputs")


@dataclass(frozen=True)
class Link:
    r"""What an attention model shows of its indices. All functions act on one sequence and are written in JAX.

    One of three descriptions of p(y|z) is needed; if several are given, the first of this list is used.

    Parameters
    ----------
    tokens, rank : T and r.
    sample : ``(z, e) -> y`` with z (T, r) and ``noise`` standard normal numbers e.
    noise : how many numbers e the functions use; a discrete choice goes through ``jax.scipy.special.ndtr(e)``.
    log_partition : ``(y, omega, V) -> log E p(y|z)`` for rows :math:`z_t \sim N(\omega_t, V)`, in closed form.
    solve : ``(y, s) -> (z (B, T, r), logw (B,))``, the level set {z : link(z) = y} of a noiseless link as B branches
        over the free coordinates s; logw is minus log \|det dy / d(dependent entries of z)\|.
    free : of ``solve``: positions ``((t, a), ...)`` with z[t, a] = s, or ranges ``((low, high), ...)`` of floats in
        coordinates of your choice.
    log_density : ``(y, z) -> log p(y|z)``, up to a function of y.
    mean : ``z -> E[y|z]``; without it, the average of ``sample`` over 64 noise points.
    symmetry : transformations of z that leave the law of y unchanged, as in :func:`attnlab.smi.align`.
    smooth : False where ``log_density`` jumps; then random points replace the grid.
    indices : ``(z, e) -> z`` for tilted links, whose tokens carry information: turns Gaussian indices into those of
        the law. It sees the same e as ``sample``.
    read_outputs : ``y (n, ...) -> y``, checks the outputs of a user and raises a ValueError that says what is wrong.
    name : for tables and saved learners.
    parameters : of a link that attnlab ships.

    Functions should be defined once, at module level: a new function object is compiled anew.

    >>> import jax.numpy as jnp
    >>> link = Link(tokens=1, rank=1, noise=1, sample=lambda z, e: jnp.abs(z[:, 0]) + 0.1 * e,
    ...             log_density=lambda y, z: -0.5 * ((y - jnp.abs(z[:, 0])) ** 2).sum() / 0.01, symmetry="sign")
    >>> link.route
    'grid'
    """

    tokens: int
    rank: int
    sample: Callable[[Any, Any], Any]
    noise: int = 0
    log_partition: Callable[[Any, Any, Any], Any] | None = None
    solve: Callable[[Any, Any], tuple[Any, Any]] | None = None
    free: tuple[tuple[Any, Any], ...] = ()
    log_density: Callable[[Any, Any], Any] | None = None
    mean: Callable[[Any], Any] | None = None
    symmetry: str | Sequence[Any] = "none"
    smooth: bool = True
    indices: Callable[[Any, Any], Any] | None = None
    read_outputs: Callable[[np.ndarray], np.ndarray] | None = None
    name: str = ""
    parameters: tuple[tuple[str, Any], ...] = field(default=())

    def __post_init__(self) -> None:
        integer("tokens", self.tokens, low=1)
        integer("rank", self.rank, low=1)
        integer("noise", self.noise, low=0)
        for name in FUNCTIONS:
            if not (callable(given := getattr(self, name)) or (given is None and name != "sample")):
                raise TypeError(f"{name} must be a function, got {given!r}")
        if isinstance(self.symmetry, str):
            one_of("symmetry", self.symmetry, SYMMETRIES)
        else:
            object.__setattr__(self, "symmetry", matrices(self.symmetry, self.rank))
        if not (self.log_partition or self.solve or self.log_density):
            raise ValueError("a link needs log_partition, solve or log_density: none describes p(y|z)")
        if self.free and self.solve is None:
            raise ValueError(f"free names the coordinates of solve, which is not given; got free={self.free!r}")
        if self.log_partition is None:
            self._check_size()

    def _check_size(self) -> None:
        """Refuse integrals that no rule here can do."""
        if self.solve is not None:
            if not 1 <= len(self.free) <= FREE_LIMIT:
                raise ValueError(
                    f"free must name the 1 to {FREE_LIMIT} coordinates of the level set of solve, got {self.free!r}"
                )
            if self.has_ranges and len(self.free) > GRID_LIMIT:
                raise ValueError(f"free ranges are integrated on a grid, at most {GRID_LIMIT}, got {len(self.free)}")
            for first, second in self.free:
                if self.has_ranges:
                    if not -np.inf < first < second < np.inf:
                        raise ValueError(f"free must be ranges (low, high) with low < high, got {(first, second)}")
                elif not (0 <= first < self.tokens and 0 <= second < self.rank):
                    limits = (self.tokens, self.rank)
                    raise ValueError(f"free must be positions (t, a) below {limits}, got {(first, second)}")
            if len(set(self.free)) < len(self.free) and not self.has_ranges:
                raise ValueError(f"free must name different positions, got {self.free!r}")
        elif self.dimension > POINTS_LIMIT:
            raise ValueError(
                f"tokens * rank = {self.dimension} indices are too many to integrate log_density over (at most "
                f"{POINTS_LIMIT}); give log_partition in closed form"
            )

    @property
    def dimension(self) -> int:
        """Number of indices T r of a sequence."""
        return self.tokens * self.rank

    @property
    def has_ranges(self) -> bool:
        """Whether ``free`` holds ranges and not positions."""
        # Positions are integers.
        return any(isinstance(x, float) for pair in self.free for x in pair)

    @property
    def route(self) -> str:
        """How the posterior of z is computed: ``closed``, ``grid`` or ``points``."""
        if self.log_partition is not None:
            return "closed"
        size = len(self.free) if self.solve is not None else self.dimension
        # ``smooth`` is about log_density: a level set may be summed on a grid in any case.
        return "grid" if size <= GRID_LIMIT and (self.smooth or self.solve is not None) else "points"

    @property
    def shipped(self) -> bool:
        """Whether it is one of attnlab's own, which its text names."""
        from attnlab.smi.links.named import SHIPPED

        # Equal parameters give the same object from the cache; a copy with functions of its own only bears the name.
        return self.name in SHIPPED and SHIPPED[self.name](**dict(self.parameters)).sample is self.sample

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters)
        if self.name:
            return f"{self.name}({inside})" if self.shipped else self.name
        return f"link of rank {self.rank} on {self.tokens} token(s)"

    def __repr__(self) -> str:
        return f"smi.links.{self}" if self.shipped else f"<{self}>"

    def saved_as(self) -> str:
        """What a saved learner keeps: a text. A link of your own must be given again (``set_params``)."""
        return str(self)

    def __reduce__(self) -> Any:
        """A shipped link travels to other processes by name: its functions are closures."""
        if self.shipped:
            from attnlab.smi.links import named

            return named, (str(self),)
        return _rebuild, ({name: getattr(self, name) for name in self.__dataclass_fields__},)


def _rebuild(fields: Mapping[str, Any]) -> Link:
    return Link(**fields)


def matrices(given: Any, rank: int) -> tuple[Any, ...]:
    """A list of orthogonal matrices as nested tuples, which can be hashed."""
    found = [np.asarray(matrix, dtype=float) for matrix in given]
    for matrix in found:
        if matrix.shape != (rank, rank) or not np.allclose(matrix @ matrix.T, np.eye(rank), atol=1e-10):
            raise ValueError(f"symmetry must be a name or a list of orthogonal {rank} x {rank} matrices, got {given!r}")
    return tuple(tuple(map(tuple, matrix.tolist())) for matrix in found)
