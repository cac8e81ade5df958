"""What E1 and E2 must show: the claims of arXiv:2307.11353 on key averages and correlations, and their controls."""

from __future__ import annotations

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most, between
from attnlab.common.records import Records
from attnlab.common.statistics import Statistic, function_of_means, mean, of, ratio_of_means

PAPER = "arXiv:2307.11353"
SEEDS = "chosen on five seeds of an independent prototype and confirmed on three held-out seeds"


def ratio(target: str, n: int, above: str, below: str) -> Statistic:
    """Error of one model over that of another, on the same data."""
    return ratio_of_means(*(of("error", target=target, n=n, model=model) for model in (above, below)))


def sample_ratio(records: Records) -> float:
    """How many times the 256 samples of RFA the RFMLP needs for its error on f1_p1, on lines between its points.

    Where the error is not reached, the largest n measured stands for it: a lower bound.
    """
    goal = np.log(records.mean("error", target="f1_p1", n=256, model="rfa"))
    curve = records.curve("n", "error", target="f1_p1", model="rfmlp")
    errors = np.minimum.accumulate(np.log(curve.mean))
    return float(np.exp(np.interp(-goal, -errors, np.log(curve.x))) / 256)


KEY_CLAIMS = (
    Claim(
        id="rfa.linear",
        says="On averages of linear key functions RFA is far below RFMLP (n = 256)",
        source=f"{PAPER}, abstract",
        statistic=ratio("f1_p1", 256, "rfmlp", "rfa"),
        holds=at_least(12),
        because=f"half the ratio 24 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.quadratic",
        says="On averages of quadratic key functions RFA is far below RFMLP (n = 2048)",
        source=f"{PAPER}, abstract",
        statistic=ratio("f1_p2", 2048, "rfmlp", "rfa"),
        holds=at_least(12),
        because=f"half the ratio 24 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.quadratic-error",
        says="RFA has learned the quadratic average by n = 2048",
        source=f"setting of {PAPER}; number derived here",
        statistic=mean(of("error", target="f1_p2", n=2048, model="rfa")),
        holds=at_most(0.075),
        because=f"1.5 times the error 0.051 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.quartic",
        says="On averages of quartic key functions RFA is below RFMLP (n = 2048)",
        source=f"{PAPER}, abstract",
        statistic=ratio("f1_p4", 2048, "rfmlp", "rfa"),
        holds=at_least(2.8),
        because=f"three quarters of the ratio 3.8 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.samples",
        says=(
            "RFA needs several times fewer samples than RFMLP for the same error on linear key averages (RFA at n = "
            "256)"
        ),
        source=f"{PAPER}, abstract",
        statistic=function_of_means(sample_ratio),
        holds=at_least(4),
        because="infinitely many heads are predicted to give 4.7; an independent prototype gave 6.6",
        kind="exploratory",
    ),
    Claim(
        id="rfa.query-linear",
        says="On linear functions of the query RFA is far below RFMLP (n = 256)",
        source=f"{PAPER}, examples (functions of the query)",
        statistic=ratio("x0_p1", 256, "rfmlp", "rfa"),
        holds=at_least(44),
        because="half the ratio 89 of an independent prototype",
        kind="exploratory",
    ),
    Claim(
        id="rfa.query-quadratic",
        says="On quadratic functions of the query RFA is far below RFMLP (n = 2048)",
        source=f"{PAPER}, examples (functions of the query)",
        statistic=ratio("x0_p2", 2048, "rfmlp", "rfa"),
        holds=at_least(6),
        because="half the ratio 12 of an independent prototype; infinitely many heads are predicted to give 46",
        kind="exploratory",
    ),
    Claim(
        id="rfa.cubic",
        says="The same advantage shows on cubic key functions (n = 2048)",
        source=f"our extension of {PAPER}, abstract (1), to cubic key functions",
        statistic=ratio("f1_p3", 2048, "rfmlp", "rfa"),
        holds=at_least(1.5),
        because="a clear advantage at the scale of the others",
        registered={"quick": "fails", "paper": "fails"},
        note=(
            "RFMLP ties: both learn the linear part only. c_3 = 0: both need many samples for the cubic harmonic; "
            "its 800 modes come after 4879 others. The learning curves predict 1.09 at n = 4096 and 1.8 at n = 16 "
            "384, which would decide it."
        ),
    ),
    Claim(
        id="rfa.bias-cost",
        says="A bias costs accuracy where there is no correlation to find (BRFA/RFA on the quadratic, n = 2048)",
        source="derived here (control)",
        statistic=ratio("f1_p2", 2048, "brfa", "rfa"),
        holds=between(1.2, 2.5),
        because=f"ratio 1.72 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.pooled",
        says=(
            "The gain on key averages needs attention: pooled random units have much larger errors (quartic, n = 2048)"
        ),
        source="derived here (control)",
        statistic=ratio("f1_p4", 2048, "patch", "rfa"),
        holds=at_least(1.5),
        because="a clear advantage of heads over pooling",
        registered={"quick": "fails", "paper": "fails"},
        note=(
            "Pooled units without heads are as good: the gain over RFMLP on key averages is that of permutation "
            "invariance; what heads and bias add shows on correlations (rfa.pooled-q1). No larger n is expected to "
            "change it: both models reach the quartic through the same degrees of the key."
        ),
    ),
)

CORRELATION_CLAIMS = (
    Claim(
        id="rfa.bias-q1",
        says="A bias lowers the error on <x_0,x_i><b,x_i> (BRFA/RFA, n = 2048)",
        source=f"{PAPER}, abstract",
        statistic=ratio("f2_q1", 2048, "brfa", "rfa"),
        holds=at_most(0.60),
        because=f"ratio 0.48 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.mlp-q1",
        says="BRFA is far below RFMLP on <x_0,x_i><b,x_i> (n = 2048)",
        source=f"{PAPER}, abstract",
        statistic=ratio("f2_q1", 2048, "rfmlp", "brfa"),
        holds=at_least(2.5),
        because=f"ratio 3.4 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.heads-q1",
        says="Attention without a bias is already below RFMLP on <x_0,x_i><b,x_i> (n = 2048)",
        source=f"{PAPER}, abstract",
        statistic=ratio("f2_q1", 2048, "rfmlp", "rfa"),
        holds=at_least(1.3),
        because="half the predicted advantage: the learning curves give 1.62",
    ),
    Claim(
        id="rfa.heads-q3",
        says="Attention without a bias is already below RFMLP on <x_0,x_i>^3<b,x_i> (n = 2048)",
        source=f"{PAPER}, abstract",
        statistic=ratio("f2_q3", 2048, "rfmlp", "rfa"),
        holds=at_least(1.1),
        because="half the predicted advantage: the learning curves give 1.22",
    ),
    Claim(
        id="rfa.pooled-q1",
        says="Heads, not pooling, gain on correlations: pooled units are above RFA on <x_0,x_i><b,x_i> (n = 2048)",
        source="derived here (control)",
        statistic=ratio("f2_q1", 2048, "patch", "rfa"),
        holds=at_least(1.2),
        because="less than half the advantage 1.5 of one seed of an independent prototype",
        kind="exploratory",
    ),
    Claim(
        id="rfa.bias-q3",
        says="A bias lowers the error on <x_0,x_i>^3<b,x_i> (n = 2048)",
        source=f"{PAPER}, abstract",
        statistic=ratio("f2_q3", 2048, "brfa", "rfa"),
        holds=at_most(0.85),
        because=f"ratio 0.74 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.bias-softmax4",
        says="A bias lowers the error on sharp softmax attention (n = 2048)",
        source=f"{PAPER}, abstract",
        statistic=ratio("softmax_g4", 2048, "brfa", "rfa"),
        holds=at_most(0.50),
        because=f"ratio 0.41 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.bias-softmax1",
        says="A bias lowers the error on soft softmax attention (n = 1024)",
        source=f"{PAPER}, abstract",
        statistic=ratio("softmax_g1", 1024, "brfa", "rfa"),
        holds=at_most(0.20),
        because=f"ratio 0.12 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        id="rfa.misaligned",
        says="A bias gains on a rotated correlation too (BRFA/RFA on <x_0,O x_i>^2<b,x_i>, n = 2048)",
        source="derived here (control)",
        statistic=ratio("rot_q2", 2048, "brfa", "rfa"),
        holds=at_most(0.95),
        because="a gain of five per cent",
        registered={"quick": "fails", "paper": "fails"},
        note=(
            "Ratio 1.0: the identity is no better than no bias when the target's correlations are rotated. No scale "
            "would change it; a bias along the rotation would (figure rfa.rotation)."
        ),
    ),
    Claim(
        id="rfa.even-q2",
        says="The order BRFA below RFMLP also shows at q = 2 (n = 2048)",
        source=f"our extension of {PAPER}, abstract (3), to even powers",
        statistic=ratio("f2_q2", 2048, "rfmlp", "brfa"),
        holds=at_least(1.2),
        because="a fifth, less than half the smallest gain at odd q",
        registered={"quick": "fails", "paper": "fails"},
        note=(
            "No model has learned q = 2 by n = 4096; near-ridgeless overfitting puts RFMLP lowest. Already RFA is "
            "predicted to pass it by n = 16 384 (0.66 against 0.78), and by this fifth at n = 65 536; at n = 4096 a "
            "bias twice as strong shows a gain over RFA (claim rfa.scale-even)."
        ),
    ),
    Claim(
        id="rfa.even-q4",
        says="The order BRFA below RFMLP also shows at q = 4 (n = 2048)",
        source=f"our extension of {PAPER}, abstract (3), to even powers",
        statistic=ratio("f2_q4", 2048, "rfmlp", "brfa"),
        holds=at_least(1.2),
        because="as for q = 2",
        registered={"quick": "fails", "paper": "fails"},
        note=(
            "As for q = 2, and later: the modes of degree (4, 5) outnumber any n reached here. n beyond 65 536 would "
            "decide it."
        ),
    ),
)
