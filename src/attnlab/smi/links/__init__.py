"""The links that attnlab ships; each is a few lines, and a model for your own."""

from attnlab.smi.links.attention import attention, causal_attention, deep_attention, untied_attention
from attnlab.smi.links.committees import committee, product, sign_committee, sign_product
from attnlab.smi.links.location import single_location
from attnlab.smi.links.named import as_link, named
from attnlab.smi.links.single import door, linear, phase_retrieval, sign

__all__ = [
    "as_link",
    "attention",
    "causal_attention",
    "committee",
    "deep_attention",
    "door",
    "linear",
    "named",
    "phase_retrieval",
    "product",
    "sign",
    "sign_committee",
    "sign_product",
    "single_location",
    "untied_attention",
]
