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
        "rfa.linear",
        "On averages of linear key functions RFA is far below RFMLP (n = 256)",
        f"{PAPER}, abstract",
        ratio("f1_p1", 256, "rfmlp", "rfa"),
        at_least(12),
        f"half the ratio 24 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.quadratic",
        "On averages of quadratic key functions RFA is far below RFMLP (n = 2048)",
        f"{PAPER}, abstract",
        ratio("f1_p2", 2048, "rfmlp", "rfa"),
        at_least(12),
        f"half the ratio 24 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.quadratic-error",
        "RFA has learned the quadratic average by n = 2048",
        f"setting of {PAPER}; number derived here",
        mean(of("error", target="f1_p2", n=2048, model="rfa")),
        at_most(0.075),
        f"1.5 times the error 0.051 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.quartic",
        "On averages of quartic key functions RFA is below RFMLP (n = 2048)",
        f"{PAPER}, abstract",
        ratio("f1_p4", 2048, "rfmlp", "rfa"),
        at_least(2.8),
        f"three quarters of the ratio 3.8 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.samples",
        "RFA needs several times fewer samples than RFMLP for the same error on linear key averages (RFA at n = 256)",
        f"{PAPER}, abstract",
        function_of_means(sample_ratio),
        at_least(4),
        "infinitely many heads are predicted to give 4.7; an independent prototype gave 6.6",
        kind="exploratory",
    ),
    Claim(
        "rfa.query-linear",
        "On linear functions of the query RFA is far below RFMLP (n = 256)",
        f"{PAPER}, examples (functions of the query)",
        ratio("x0_p1", 256, "rfmlp", "rfa"),
        at_least(44),
        "half the ratio 89 of an independent prototype",
        kind="exploratory",
    ),
    Claim(
        "rfa.query-quadratic",
        "On quadratic functions of the query RFA is far below RFMLP (n = 2048)",
        f"{PAPER}, examples (functions of the query)",
        ratio("x0_p2", 2048, "rfmlp", "rfa"),
        at_least(6),
        "half the ratio 12 of an independent prototype; infinitely many heads are predicted to give 46",
        kind="exploratory",
    ),
    Claim(
        "rfa.cubic",
        "The same advantage shows on cubic key functions (n = 2048)",
        f"our extension of {PAPER}, abstract (1), to cubic key functions",
        ratio("f1_p3", 2048, "rfmlp", "rfa"),
        at_least(1.5),
        "a clear advantage at the scale of the others",
        {"quick": "fails", "paper": "fails"},
        "RFMLP ties: both learn the linear part only. c_3 = 0: both need many samples for the cubic harmonic; its 800 "
        "modes come after 4879 others. The learning curves predict 1.09 at n = 4096 and 1.8 at n = 16 384, which would "
        "decide it.",
    ),
    Claim(
        "rfa.bias-cost",
        "A bias costs accuracy where there is no correlation to find (BRFA/RFA on the quadratic, n = 2048)",
        "derived here (control)",
        ratio("f1_p2", 2048, "brfa", "rfa"),
        between(1.2, 2.5),
        f"ratio 1.72 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.pooled",
        "The gain on key averages needs attention: pooled random units have much larger errors (quartic, n = 2048)",
        "derived here (control)",
        ratio("f1_p4", 2048, "patch", "rfa"),
        at_least(1.5),
        "a clear advantage of heads over pooling",
        {"quick": "fails", "paper": "fails"},
        "Pooled units without heads are as good: the gain over RFMLP on key averages is that of permutation "
        "invariance; what heads and bias add shows on correlations (rfa.pooled-q1). No larger n is expected to change "
        "it: both models reach the quartic through the same degrees of the key.",
    ),
)

CORRELATION_CLAIMS = (
    Claim(
        "rfa.bias-q1",
        "A bias lowers the error on <x_0,x_i><b,x_i> (BRFA/RFA, n = 2048)",
        f"{PAPER}, abstract",
        ratio("f2_q1", 2048, "brfa", "rfa"),
        at_most(0.60),
        f"ratio 0.48 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.mlp-q1",
        "BRFA is far below RFMLP on <x_0,x_i><b,x_i> (n = 2048)",
        f"{PAPER}, abstract",
        ratio("f2_q1", 2048, "rfmlp", "brfa"),
        at_least(2.5),
        f"ratio 3.4 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.heads-q1",
        "Attention without a bias is already below RFMLP on <x_0,x_i><b,x_i> (n = 2048)",
        f"{PAPER}, abstract",
        ratio("f2_q1", 2048, "rfmlp", "rfa"),
        at_least(1.3),
        "half the predicted advantage: the learning curves give 1.62",
    ),
    Claim(
        "rfa.heads-q3",
        "Attention without a bias is already below RFMLP on <x_0,x_i>^3<b,x_i> (n = 2048)",
        f"{PAPER}, abstract",
        ratio("f2_q3", 2048, "rfmlp", "rfa"),
        at_least(1.1),
        "half the predicted advantage: the learning curves give 1.22",
    ),
    Claim(
        "rfa.pooled-q1",
        "Heads, not pooling, gain on correlations: pooled units are above RFA on <x_0,x_i><b,x_i> (n = 2048)",
        "derived here (control)",
        ratio("f2_q1", 2048, "patch", "rfa"),
        at_least(1.2),
        "less than half the advantage 1.5 of one seed of an independent prototype",
        kind="exploratory",
    ),
    Claim(
        "rfa.bias-q3",
        "A bias lowers the error on <x_0,x_i>^3<b,x_i> (n = 2048)",
        f"{PAPER}, abstract",
        ratio("f2_q3", 2048, "brfa", "rfa"),
        at_most(0.85),
        f"ratio 0.74 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.bias-softmax4",
        "A bias lowers the error on sharp softmax attention (n = 2048)",
        f"{PAPER}, abstract",
        ratio("softmax_g4", 2048, "brfa", "rfa"),
        at_most(0.50),
        f"ratio 0.41 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.bias-softmax1",
        "A bias lowers the error on soft softmax attention (n = 1024)",
        f"{PAPER}, abstract",
        ratio("softmax_g1", 1024, "brfa", "rfa"),
        at_most(0.20),
        f"ratio 0.12 seen; {SEEDS}",
        kind="exploratory",
    ),
    Claim(
        "rfa.misaligned",
        "A bias gains on a rotated correlation too (BRFA/RFA on <x_0,O x_i>^2<b,x_i>, n = 2048)",
        "derived here (control)",
        ratio("rot_q2", 2048, "brfa", "rfa"),
        at_most(0.95),
        "a gain of five per cent",
        {"quick": "fails", "paper": "fails"},
        "Ratio 1.0: the identity is no better than no bias when the target's correlations are rotated. No scale would "
        "change it; a bias along the rotation would (figure rfa.rotation).",
    ),
    Claim(
        "rfa.even-q2",
        "The order BRFA below RFMLP also shows at q = 2 (n = 2048)",
        f"our extension of {PAPER}, abstract (3), to even powers",
        ratio("f2_q2", 2048, "rfmlp", "brfa"),
        at_least(1.2),
        "a fifth, less than half the smallest gain at odd q",
        {"quick": "fails", "paper": "fails"},
        "No model has learned q = 2 by n = 4096; near-ridgeless overfitting puts RFMLP lowest. Already RFA is "
        "predicted to pass it by n = 16 384 (0.66 against 0.78), and by this fifth at n = 65 536; at n = 4096 a bias "
        "twice as strong shows a gain over RFA (claim rfa.scale-even).",
    ),
    Claim(
        "rfa.even-q4",
        "The order BRFA below RFMLP also shows at q = 4 (n = 2048)",
        f"our extension of {PAPER}, abstract (3), to even powers",
        ratio("f2_q4", 2048, "rfmlp", "brfa"),
        at_least(1.2),
        "as for q = 2",
        {"quick": "fails", "paper": "fails"},
        "As for q = 2, and later: the modes of degree (4, 5) outnumber any n reached here. n beyond 65 536 would "
        "decide it.",
    ),
)
