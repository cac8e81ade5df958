"""What every figure with a finite number of heads must show: the prediction for those heads is near the simulation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from attnlab.common.claim import Claim, Status, at_most, between
from attnlab.common.records import Records
from attnlab.common.statistics import Statistic, function_of_means, known, largest, of, ratio_of_means

LOW, HIGH = 0.55, 1.25
BECAUSE = (
    "the band in which 120 settings of an independent prototype lay, [0.60, 1.17], and a margin; registered with the "
    "equations, before the figures were run with them"
)


def settings(records: Records, names: tuple[str, ...]) -> list[tuple[dict[str, object], float]]:
    """The settings with a prediction for finitely many heads, and its value."""
    found = {}
    for row in records:
        if "theory" in row and row.get("heads") != 0:
            found[tuple(row[name] for name in names)] = row["theory"]
    return [(dict(zip(names, values, strict=True)), theory) for values, theory in found.items()]


def theory_claims(
    figure: str, what: str, *names: str, registered: Mapping[str, Status] | None = None, note: str = ""
) -> tuple[Claim, Claim]:
    """Claims on theory over simulation, at every setting of these parameters and on the whole.

    ``registered`` and ``note`` are of the claim on every setting.
    """

    def bands(records: Records) -> list[Statistic]:
        """How far theory over simulation is towards the ends of its band: one is at an end."""
        pairs = [
            (
                ratio_of_means(known(theory / HIGH), of("error", **where)),
                ratio_of_means(of("error", **where), known(theory / LOW)),
            )
            for where, theory in settings(records, names)
        ]
        return list(itertools.chain.from_iterable(pairs))

    def whole(records: Records) -> float:
        """Geometric mean over settings of theory over simulation."""
        logs = [np.log(theory / records.mean("error", **where)) for where, theory in settings(records, names)]
        if not logs:
            raise LookupError("no setting with a prediction for finitely many heads")
        return float(np.exp(np.mean(logs)))

    return (
        Claim(
            id=f"{figure}-finite",
            says=(
                f"The prediction for finitely many heads is within {LOW} and {HIGH} times the simulation, {what} "
                "(largest share of the band)"
            ),
            source="derived here",
            statistic=largest(bands),
            holds=at_most(1),
            because=BECAUSE,
            registered=registered or {},
            note=note,
        ),
        Claim(
            id=f"{figure}-finite-mean",
            says=(
                f"The prediction for finitely many heads is near the simulation on the whole, {what} (geometric mean "
                "of theory over simulation)"
            ),
            source="derived here",
            statistic=function_of_means(whole),
            holds=between(0.75, 1.1),
            because="registered with the equations, before the figures were run with them",
        ),
    )
