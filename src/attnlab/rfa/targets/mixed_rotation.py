"""(1/N) sum_i <x_0, S x_i> <b, x_i> with S between the identity and a rotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attnlab.common.validation import real
from attnlab.rfa.targets.base import Energies, Target, scores

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class MixedRotation(Target):
    """(1/N) sum_i <x_0, S x_i> <b, x_i>,  S = gamma I + sqrt(1 - gamma^2) O."""

    gamma: float = 1.0
    name: ClassVar[str] = "mixed_rotation"

    def __post_init__(self) -> None:
        real("gamma", self.gamma, low=0, high=1)

    @property
    def label(self) -> str:
        """<x_0, S x_i> <b, x_i>."""
        return r"$\langle x_0, (\gamma I + \sqrt{1-\gamma^2} O) x_i\rangle\langle b, x_i\rangle$"

    def matrix(self, task: Task) -> np.ndarray:
        """S = gamma I + sqrt(1 - gamma^2) O."""
        return np.asarray(self.gamma * np.eye(task.d) + np.sqrt(1 - self.gamma**2) * task.rotation)

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The average."""
        return np.asarray((scores(query @ self.matrix(task), keys) * (keys @ task.b)).mean(axis=1))

    def energies(self, task: Task) -> Energies:
        """The trace of the key's quadratic form is a function of the query alone."""
        d, S = task.d, self.matrix(task)
        # On the sphere E (x^T A x)(b^T x)^2 = (tr A + 2 b^T A b) / (d (d + 2)), here with A = S^T S.
        along_b = float(np.sum((S @ task.b) ** 2))
        total = (float(np.sum(S**2)) + 2 * along_b) / (d**2 * (d + 2))
        return {(1, 0): along_b / d**3, (1, 2): total - along_b / d**3}

    def tensors(self, task: Task) -> Energies:
        """S (x) b, symmetrised in the key."""
        S = self.matrix(task)
        return {(1, 2): float(np.sqrt((np.sum(S**2) + np.sum((S @ task.b) ** 2)) / 2))}

    def degrees(self) -> tuple[int, int]:
        """Of degree one in the query and two in the key."""
        return 1, 2
