"""Sentences in which one word decides: the templates of arXiv:2410.01537, and clauses that hide the location."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import integer, one_of

CITY = ["The city is nice.", "The city is dreadful.", "The city is clean.", "The city is dirty."]
ADJECTIVES = {"nice": 1, "mean": -1, "cute": 1, "dreadful": -1, "aggressive": -1, "delightful": 1}
NEW_ADJECTIVES = {"lovely": 1, "nasty": -1, "charming": 1, "foul": -1}
TEST_WORDS = {"pronoun": ["their", "your"], "colour": ["purple", "gray"], "animal": ["cat", "eagle", "goat"]}
SIZES = ["big", "little", "mini", "enormous"]

GOOD, BAD = ["nice", "good", "lovely", "clean"], ["bad", "dirty", "ugly", "mean"]
PETS = {"seen": ["dog", "cat", "horse", "bird"], "new": ["rabbit", "cow", "mouse"]}
THINGS = {
    "seen": ["house", "car", "table", "garden", "street", "kitchen"],
    "new": ["boat", "chair", "window", "bridge"],
}
OWNERS = ["my", "his", "her", "our"]
FRAMES = ("is", "said", "before")


class Labelled(NamedTuple):
    """Sentences with the sign that one of their words carries."""

    sentences: list[str]
    labels: np.ndarray


class Clauses(NamedTuple):
    """Sentences of three clauses as lists of words, and which clause decides.

    ``places`` and ``nouns`` are the places of the adjectives and of the nouns they belong to, ``signs`` what the
    adjectives say, all (n, 3); the label is the sign at ``location``.
    """

    words: list[list[str]]
    places: np.ndarray
    location: np.ndarray
    labels: np.ndarray
    nouns: np.ndarray
    signs: np.ndarray


def _fill(*slots: Sequence[str] | dict[str, int]) -> Labelled:
    """All combinations of the slots; the label is the sign of the slot that is a dict, empty words are dropped."""
    sentences, labels = [], []
    for choice in itertools.product(*slots):
        sentences.append(" ".join(word for word in choice if word))
        labels.append(next(slot[word] for slot, word in zip(slots, choice, strict=True) if isinstance(slot, dict)))
    return Labelled(sentences, np.array(labels))


def _join(*parts: Labelled) -> Labelled:
    return Labelled([s for part in parts for s in part.sentences], np.concatenate([part.labels for part in parts]))


def templates() -> dict[str, Labelled]:
    """The five sets of arXiv:2410.01537, section 2: train, test, and three kinds of distribution shift.

    >>> {name: len(part.labels) for name, part in templates().items()}
    {'train': 15552, 'test': 2304, 'new words': 3072, 'new structure': 144, 'both': 96}
    """
    owner, colour, animal = TEST_WORDS.values()
    some, more, shift = ["", "very", "extremely"], ["", "especially"], ["Good evening,"]
    hello = ["Hello, how are you? Good evening,"]
    first = [CITY, ["my", "his", "her", "our"], ["", "blue", "orange", "beige", "green", "red"]]
    pets, is_ = ["dog", "owl", "cow"], ["is"]
    return {
        "train": _join(
            _fill(*first, pets, is_, some, ADJECTIVES), _fill(*first, ADJECTIVES, pets, is_, some, ["tiny", "giant"])
        ),
        "test": _fill(CITY, owner, colour, ADJECTIVES, animal, is_, more, SIZES),
        "new words": _join(
            _fill(CITY, shift, owner, SIZES, colour, animal, is_, more, NEW_ADJECTIVES),
            _fill(CITY, shift, owner, NEW_ADJECTIVES, colour, animal, is_, more, SIZES),
        ),
        "new structure": _fill(hello, owner, colour, animal, is_, more, ADJECTIVES),
        "both": _fill(hello, owner, colour, animal, is_, more, NEW_ADJECTIVES),
    }


def clauses(n: int, nouns: str, seed: Seed, frame: str = "is") -> Clauses:
    """``n`` sentences of three clauses in any order; the label is the sign of the adjective that belongs to the pet.

    All adjectives come from the same eight words and the clauses in any order, so neither word nor place alone tells
    which adjective decides. ``nouns``: ``"seen"`` or ``"new"``. ``frame``: ``"is"`` (my dog is nice and the car is bad
    and ...), ``"said"`` (people say that my dog was nice , but that ...) or ``"before"`` (my nice dog and the bad car
    and ...).
    """
    n = integer("n", n, low=1)
    one_of("nouns", nouns, PETS)
    one_of("frame", frame, FRAMES)
    rng = stream(seed, "data", "slr", "clauses", frame, nouns)
    drawn = [_sentence(nouns, frame, rng) for _ in range(n)]
    words, places, found, location, signs = zip(*drawn, strict=True)
    labels = [row[i] for row, i in zip(signs, location, strict=True)]
    return Clauses(
        list(words), np.array(places), np.array(location), np.array(labels), np.array(found), np.array(signs)
    )


def shuffled(sample: Clauses, seed: Seed) -> Clauses:
    """The same sentences with their words in random order: no adjective belongs to the pet any more.

    Adjectives of a shuffled sentence are exchangeable, so that whatever finds the one of the pet is right in one of
    three cases.
    """
    rng = stream(seed, "data", "slr", "shuffled words")
    orders = [rng.permutation(len(words)) for words in sample.words]
    # the word at place i moves to the place where i stands in the order
    moved = [np.argsort(order) for order in orders]
    places, nouns = (
        np.array([to[at] for to, at in zip(moved, where, strict=True)]) for where in (sample.places, sample.nouns)
    )
    words = [[row[i] for i in order] for row, order in zip(sample.words, orders, strict=True)]
    return sample._replace(words=words, places=places, nouns=nouns)


def _sentence(nouns: str, frame: str, rng: np.random.Generator) -> tuple[Any, ...]:
    """Words, places of adjectives and nouns, the clause that decides, and the signs in the order of the clauses."""
    subjects = [["the", str(thing)] for thing in rng.choice(THINGS[nouns], 2, replace=False)]
    # Subject 0 is the pet: it stands where the order has its zero.
    subjects.insert(0, [str(rng.choice(OWNERS)), str(rng.choice(PETS[nouns]))])
    order, signs = rng.permutation(3), rng.choice([-1, 1], 3)
    words: list[str] = ["people", "say"] if frame == "said" else []
    places, found = [], []
    for place, clause in enumerate(order):
        adverb = str(rng.choice(["", "very", "quite"]))
        # Signs are in the order of the places, by which the label is read.
        quality = [adverb] * bool(adverb) + [str(rng.choice(GOOD if signs[place] > 0 else BAD))]
        words += _joint(frame, place)
        owner, noun = subjects[clause]
        if frame == "before":
            # The adjective is the last word of ``quality``: an adverb stands before it.
            words += [owner, *quality]
            places.append(len(words) - 1)
            found.append(len(words))
            words.append(noun)
        else:
            words += [owner, noun, "is" if frame == "is" else "was"]
            found.append(len(words) - 2)
            words += quality
            places.append(len(words) - 1)
    return words, places, found, int(np.argmin(order)), [int(sign) for sign in signs]


def _joint(frame: str, place: int) -> list[str]:
    """What stands before a clause."""
    if frame == "said":
        # A comma is a word: the tokenizer is given lists, and places count their entries.
        return [["that"], [",", "but", "that"], [",", "and", "that"]][place]
    return ["and"] * (place > 0)
