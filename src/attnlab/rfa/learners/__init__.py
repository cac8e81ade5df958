"""Learners: frozen random features with trained values, and their kernel limit."""

from attnlab.rfa.learners.attention import RandomFeatureAttention as RandomFeatureAttention
from attnlab.rfa.learners.attention import RandomFeatureSelfAttention as RandomFeatureSelfAttention
from attnlab.rfa.learners.kernel_ridge import AttentionKernelRidge as AttentionKernelRidge
from attnlab.rfa.learners.stack import RFAStack as RFAStack
from attnlab.rfa.learners.units import PatchRandomFeatures as PatchRandomFeatures
from attnlab.rfa.learners.units import RandomFeatureMLP as RandomFeatureMLP
