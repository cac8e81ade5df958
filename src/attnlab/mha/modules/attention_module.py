r"""The attention layer of a trained model in the form of this system.

A module with :math:`q = xA_Q + b_Q`, :math:`k = xA_K + b_K`, :math:`v = xA_V + b_V`, output :math:`\cdot A_O + b_O` and
heads of width h is the layer

.. math::
    \Theta_i = A_{Q,i} A_{K,i}^\top/\sqrt h, \quad c_i = b_{Q,i} A_{K,i}^\top/\sqrt h, \quad
    W_i = A_{V,i} A_{O,i}, \quad c_0 = b_O + \sum_i b_{V,i} A_{O,i} .

The key bias b_K drops out of the softmax, and so does every other term that depends on the query alone (derived here).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import integer
from attnlab.mha.layer import attention
from attnlab.mha.modules.safetensors import Tensors

# Parts of the names that weights and buffers of position schemes have in a state dict.
_ROTARY = ("rotary", "inv_freq", "relative_attention_bias", "distance_embedding", "alibi")


@dataclass(frozen=True, eq=False)
class AttentionModule:
    """Weights of an attention module, in the convention token times matrix.

    Parameters
    ----------
    query, key, value : ``(d, heads h)``.
    out : ``(heads h, d_out)``.
    query_bias, key_bias, value_bias, out_bias : vectors; zeros when the module has none.
    n_heads : number of heads, which share the columns equally.
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    out: np.ndarray
    query_bias: np.ndarray
    key_bias: np.ndarray
    value_bias: np.ndarray
    out_bias: np.ndarray
    n_heads: int

    @property
    def d(self) -> int:
        """Width of a token."""
        return len(self.query)

    @property
    def rank(self) -> int:
        """Width of a head, which bounds the rank of its matrices."""
        return int(self.query.shape[1]) // self.n_heads

    @property
    def Theta(self) -> np.ndarray:
        """Attention matrices ``(m, d, d)``, in float64."""
        return self._heads(self.query) @ self._heads(self.key).transpose(0, 2, 1) / np.sqrt(self.rank)

    @property
    def W(self) -> np.ndarray:
        """Projections ``(m, d, d_out)``, in float64."""
        return self._heads(self.value) @ self._out()

    @property
    def c(self) -> np.ndarray:
        """What the query biases add to the logits of a key, ``(m, d)``."""
        heads = self.query_bias.astype(float).reshape(self.n_heads, 1, -1)
        return (heads @ self._heads(self.key).transpose(0, 2, 1))[:, 0] / np.sqrt(self.rank)

    @property
    def c0(self) -> np.ndarray:
        """The constant of the output, ``(d_out,)``."""
        values = self.value_bias.astype(float).reshape(self.n_heads, 1, -1)
        return self.out_bias.astype(float) + (values @ self._out())[:, 0].sum(axis=0)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Outputs of the layer in float64, from Theta, W and the biases."""
        return attention(X, self.Theta, self.W, self.c, self.c0)

    def oracle(self, dtype: Any = np.float32, *, causal: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """A black box that computes with the module's own Q, K, V and O in a precision, never with Theta and W."""
        weights = [getattr(self, name).astype(dtype) for name in ("query", "key", "value", "out")]
        biases = [getattr(self, f"{name}_bias").astype(dtype) for name in ("query", "key", "value", "out")]
        # In the oracle's precision: a scalar of float64 would lift every logit to float64.
        scale = np.sqrt(np.asarray(self.rank, dtype=dtype))

        def answer(X: np.ndarray) -> np.ndarray:
            tokens = check_tokens(X, d=self.d).astype(dtype)
            q, k, v = (self._split(tokens @ w + b) for w, b in zip(weights[:3], biases[:3], strict=True))
            logits = q @ k.transpose(0, 1, 3, 2) / scale
            if causal:
                # Every token sees itself, so that no row is all -inf and its largest logit is a number.
                logits = np.where(np.tri(tokens.shape[1], dtype=bool), logits, -np.inf)
            logits = np.exp(logits - logits.max(axis=-1, keepdims=True))
            context = (logits / logits.sum(axis=-1, keepdims=True)) @ v
            joined = context.transpose(0, 2, 1, 3).reshape(*tokens.shape[:2], -1)
            return joined @ weights[3] + biases[3]

        return answer

    def _heads(self, matrix: np.ndarray) -> np.ndarray:
        """Columns of the heads, ``(m, d, h)``."""
        return matrix.astype(float).reshape(len(matrix), self.n_heads, -1).transpose(1, 0, 2)

    def _out(self) -> np.ndarray:
        return self.out.astype(float).reshape(self.n_heads, self.rank, -1)

    def _split(self, projected: np.ndarray) -> np.ndarray:
        """(n, k, heads h) to (n, heads, k, h)."""
        n, k, _ = projected.shape
        return projected.reshape(n, k, self.n_heads, self.rank).transpose(0, 2, 1, 3)


def from_module(module: Any, n_heads: int | None = None, layer: int | None = None) -> AttentionModule:
    """The attention layer of a trained model.

    Parameters
    ----------
    module : one of

        * a ``torch.nn.MultiheadAttention``;
        * a state dict (name to array or tensor) of BERT (``encoder.layer.0.attention.self.query.weight``), of GPT-2
          (``h.0.attn.c_attn.weight``; causal, so ask its ``oracle(causal=True)``) or of the first kind;
        * a dict with ``query``, ``key``, ``value`` (d, heads h), ``out`` (heads h, d_out) and any of ``query_bias``,
          ``key_bias``, ``value_bias``, ``out_bias``, in the convention token times matrix;
        * the path of a ``.safetensors`` file with such a state dict, read without torch. A ``config.json`` beside it
          says the number of heads.
    n_heads : where the source does not say it.
    layer : which layer of a model with several; 0 by default.

    Residual connections and layer norms are outside of the layer. Positions inside attention (rotary, relative) are
    refused: such a layer is not of this form.
    """
    if isinstance(module, str | Path):
        return from_module(Tensors(module), n_heads or _heads_beside(Path(module)), layer)
    if hasattr(module, "in_proj_weight") and hasattr(module, "out_proj"):
        return _torch_module(module)
    if not isinstance(module, Mapping):
        raise TypeError(f"module must be a MultiheadAttention, a state dict or a path, got {type(module).__name__}")
    if odd := [name for name in module if any(word in name for word in _ROTARY)]:
        raise NotImplementedError(f"positions inside attention ({odd[0]}) are not a layer of this form")
    if {"query", "key", "value", "out"} <= module.keys():
        return _made({name: _array(module[name]) for name in module}, n_heads)
    return _made(_from_names(module, layer or 0), n_heads)


def _from_names(state: Mapping[str, Any], layer: int) -> dict[str, np.ndarray]:
    """The four matrices and biases of a layer, by the names that the model gives them."""
    bert, gpt = f"encoder.layer.{layer}.attention.", f"h.{layer}.attn."
    for name in state:
        if name.endswith(f"{bert}self.query.weight"):
            return _bert(state, name.removesuffix("self.query.weight"))
        # A longer name can end in h, too (patch.0.attn): before GPT-2's own there is nothing or this prefix.
        if name.endswith(f"{gpt}c_attn.weight") and name.split(gpt)[0] in ("", "transformer."):
            return _gpt2(state, name.removesuffix("c_attn.weight"))
    if "in_proj_weight" in state:
        return _joint(_array(state["in_proj_weight"]), state.get("in_proj_bias"), state["out_proj.weight"], state)
    some = ", ".join(list(state)[:4])
    raise ValueError(f"no attention layer {layer} of BERT, GPT-2 or MultiheadAttention among the names ({some}, ...)")


def _bert(state: Mapping[str, Any], prefix: str) -> dict[str, np.ndarray]:
    places = {"query": "self.query", "key": "self.key", "value": "self.value", "out": "output.dense"}
    # A linear layer of torch keeps its weight as (out, in).
    found = {name: _array(state[f"{prefix}{place}.weight"]).T for name, place in places.items()}
    return found | {
        f"{name}_bias": _array(state[f"{prefix}{place}.bias"])
        for name, place in places.items()
        if f"{prefix}{place}.bias" in state
    }


def _gpt2(state: Mapping[str, Any], prefix: str) -> dict[str, np.ndarray]:
    # GPT-2 keeps weights as (in, out). A transpose of the square c_proj would pass every check of shapes.
    parts = dict(
        zip(("query", "key", "value"), np.split(_array(state[f"{prefix}c_attn.weight"]), 3, axis=1), strict=True)
    )
    parts["out"] = _array(state[f"{prefix}c_proj.weight"])
    if f"{prefix}c_attn.bias" in state:
        biases = np.split(_array(state[f"{prefix}c_attn.bias"]), 3)
        parts |= dict(zip(("query_bias", "key_bias", "value_bias"), biases, strict=True))
        parts["out_bias"] = _array(state[f"{prefix}c_proj.bias"])
    return parts


def _torch_module(module: Any) -> AttentionModule:
    # torch keeps three weights apart when keys or values have a width of their own.
    if module.in_proj_weight is None:
        raise NotImplementedError("kdim and vdim other than embed_dim are not a layer of this form")
    if getattr(module, "bias_k", None) is not None or getattr(module, "bias_v", None) is not None:
        raise NotImplementedError("bias_k and bias_v add a token of their own: not a layer of this form")
    if getattr(module, "add_zero_attn", False):
        raise NotImplementedError("add_zero_attn adds a token of its own: not a layer of this form")
    out = module.out_proj
    state = {} if out.bias is None else {"out_proj.bias": out.bias}
    return _made(_joint(_array(module.in_proj_weight), module.in_proj_bias, out.weight, state), module.num_heads)


def _joint(weight: np.ndarray, bias: Any, out: Any, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    # The rows of in_proj_weight are outputs: three blocks of them.
    parts = {name: block.T for name, block in zip(("query", "key", "value"), np.split(weight, 3), strict=True)}
    parts["out"] = _array(out).T
    if bias is not None:
        parts |= dict(zip(("query_bias", "key_bias", "value_bias"), np.split(_array(bias), 3), strict=True))
    if "out_proj.bias" in state:
        parts["out_bias"] = _array(state["out_proj.bias"])
    return parts


def _made(parts: Mapping[str, np.ndarray], n_heads: int | None) -> AttentionModule:
    """Check the shapes; biases that are missing are zero."""
    if n_heads is None:
        raise ValueError("n_heads must be given: the weights do not say the number of heads")
    m, width = integer("n_heads", n_heads, low=1), parts["query"].shape[1]
    if width % m:
        raise ValueError(f"n_heads={m} does not divide the width {width} of the queries")
    # Heads that share keys or values (grouped queries) have narrower ones and are refused here.
    for name in ("key", "value"):
        if parts[name].shape != parts["query"].shape:
            raise ValueError(f"{name} must have shape {parts['query'].shape} as query, got {parts[name].shape}")
    if len(parts["out"]) != width:
        raise ValueError(f"out must have {width} rows, got shape {parts['out'].shape}")
    zeros = {f"{name}_bias": np.zeros(width) for name in ("query", "key", "value")}
    zeros["out_bias"] = np.zeros(parts["out"].shape[1])
    names = ("query", "key", "value", "out")
    return AttentionModule(
        **{n: parts[n] for n in names}, **{n: parts.get(n, zero) for n, zero in zeros.items()}, n_heads=m
    )


def _array(tensor: Any) -> np.ndarray:
    """A NumPy array of an array or of a torch tensor."""
    if hasattr(tensor, "detach"):
        # NumPy has no bfloat16 and takes no tensor that carries gradients or lies on a device.
        tensor = tensor.detach().cpu().double().numpy()
    return np.asarray(tensor)


def _heads_beside(path: Path) -> int | None:
    config = path.with_name("config.json")
    if not config.exists():
        return None
    known = json.loads(config.read_text())
    # BERT's name for it, then GPT-2's.
    found = known.get("num_attention_heads", known.get("n_head"))
    return None if found is None else int(found)
