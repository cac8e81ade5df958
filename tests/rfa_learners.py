"""Small learners of rfa that several test files fit."""

from attnlab.common.compute import Compute
from attnlab.rfa import (
    AttentionKernelRidge,
    PatchRandomFeatures,
    RandomFeatureAttention,
    RandomFeatureMLP,
    RFAStack,
)

DOUBLE = Compute(dtype="float64")
SMALL = {"n_heads": 40, "random_state": 0}
LEARNERS = [
    RandomFeatureAttention(**SMALL),
    RandomFeatureMLP(width=200, random_state=0),
    PatchRandomFeatures(width=200, random_state=0),
    AttentionKernelRidge(),
    RFAStack(n_heads=40, width=3, inner_heads=8, random_state=0),
]
NAMES = [type(learner).__name__ for learner in LEARNERS]
