"""A cell: one point of a figure's grid at one replicate, the unit that is computed, stored and found again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.common.fingerprint import fingerprint
from attnlab.common.seeds import canonical, cell_seed, digest

Params = Mapping[str, Any]
Record = Mapping[str, Any]


def code_of(run: Callable[..., Any]) -> str:
    """Fingerprint of what runs a cell; a spec knows its own."""
    return getattr(run, "code", "") or fingerprint(run)


def replicate_texts(figure: str, params: Params, stream: int) -> tuple[str, str]:
    """The text behind the ids of a setting's replicates: what stands before and after the replicate's number."""
    # the same text as canonical gives for a whole cell, cut at the replicate: keys are sorted, so those before
    # and after "seed" are known
    before, after = canonical({"figure": figure, "params": {}, "stream": stream}).split("{}")
    lower = canonical({name: value for name, value in params.items() if name < "seed"})[1:-1]
    upper = canonical({name: value for name, value in params.items() if name > "seed"})[1:-1]
    return f'{before}{{{lower}{"," * bool(lower)}"seed":', f"{',' * bool(upper)}{upper}}}{after}"


@dataclass(frozen=True)
class Cell:
    """One point of a figure's grid at one replicate; its numbers depend on what it holds and on the code only.

    Parameters
    ----------
    figure : the name under which it is stored.
    params : all its parameters, as plain values; they and the stream are its identity.
    run : ``(params, seed) -> record``.
    stream : which fresh random numbers: 1 to explore, 2 to confirm.
    shared : parameters that do not enter the seed.
    """

    figure: str
    params: Params
    run: Callable[[Params, np.random.SeedSequence], Record]
    stream: int = 1
    shared: tuple[str, ...] = ()

    @functools.cached_property
    def id(self) -> str:
        """A hash of the figure, the parameters and the stream."""
        return digest({"figure": self.figure, "params": self.params, "stream": self.stream})

    @functools.cached_property
    def code(self) -> str:
        """Fingerprint of the code that ``run`` reaches; once computed it travels to workers with the cell."""
        return code_of(self.run)

    @property
    def seed(self) -> np.random.SeedSequence:
        """The seed of the cell: that of its spec, or else a function of all parameters that are not shared."""
        if isinstance(seed := getattr(self.run, "seed", None), np.random.SeedSequence):
            return seed
        own = {name: value for name, value in self.params.items() if name not in self.shared}
        return cell_seed({"figure": self.figure, "params": own, "stream": self.stream})

    def __call__(self) -> Record:
        """Compute the cell."""
        return self.run(self.params, self.seed)
