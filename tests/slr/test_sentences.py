import importlib.util

import numpy as np
import pytest

from attnlab.slr import theory
from attnlab.slr.figures import FIGURES
from attnlab.slr.probing import LocationValueProbe, Reading, accuracy_of_bag_of_words
from attnlab.slr.sentences import BAD, FRAMES, GOOD, PETS, clauses, shuffled, templates


def test_templates_are_balanced_and_of_the_published_sizes():
    parts = templates()
    assert {name: len(part.labels) for name, part in parts.items()} == {
        "train": 15_552,
        "test": 2304,
        "new words": 3072,
        "new structure": 144,
        "both": 96,
    }
    assert all(part.labels.sum() == 0 for part in parts.values())
    assert all(len(part.sentences) == len(part.labels) for part in parts.values())


@pytest.mark.parametrize("nouns", ["seen", "new"])
@pytest.mark.parametrize("frame", FRAMES)
def test_the_pets_adjective_decides_and_words_do_not_give_it_away(nouns, frame):
    sample = clauses(600, nouns, 0, frame)
    for words, places, location, label, subjects, signs in zip(*sample, strict=True):
        adjectives = [words[place] for place in places]
        assert set(adjectives) <= {*GOOD, *BAD}
        assert [adjective in GOOD for adjective in adjectives] == list(signs > 0)
        assert signs[location] == label
        # only the noun of the informative clause is a pet, and it stands next to its adjective
        assert [words[place] in PETS[nouns] for place in subjects].index(True) == location
        assert (np.abs(places - subjects) <= 3).all()
    # each place is informative equally often: standard error .019
    assert np.allclose(np.bincount(sample.location) / 600, 1 / 3, atol=0.08)


def test_figure_is_skipped_without_its_extra():
    figure = next(f for f in FIGURES if f.name == "slr.probing")
    absent = any(importlib.util.find_spec(module) is None for module in figure.requires)
    assert figure.missing_extra() == ("nlp" if absent else None)


def test_a_bag_of_words_knows_the_majority_at_best():
    train, test = clauses(1500, "seen", 1), clauses(1500, "seen", 2)
    # the majority of three signs agrees with one of them in 3/4 of the sentences: standard error .011
    assert accuracy_of_bag_of_words(train, test) == pytest.approx(0.75, abs=0.05)


def test_strength_and_margin_of_scores_with_the_law_are_those_of_the_law():
    rng = np.random.default_rng(0)
    n, nu, margin = 20_000, 5.0, 3.0
    location, signs = rng.integers(0, 3, n), rng.choice([-1, 1], (n, 3))
    where, what = rng.standard_normal((2, n, 3))
    where[np.arange(n), location] += np.sqrt(nu)
    reading = Reading(np.sqrt(nu) * where, what + margin / 2 * signs)
    labels = signs[np.arange(n), location]
    law = {"nu": nu, "L": 3}
    assert reading.strength(location) == pytest.approx(nu, rel=0.05)
    assert reading.margin(signs) == pytest.approx(margin, rel=0.05)
    # proportions of 20 000: four standard errors are below .015
    assert reading.top1(location) == pytest.approx(theory.location_accuracy(**law).value, abs=0.015)
    for attention in (True, False):
        predicted = theory.reading_accuracy(margin, attention=attention, **law)
        assert reading.accuracy(labels, attention=attention) == pytest.approx(predicted.value, abs=0.015)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n must be an integer >= 1, got 0"),
        ({"nouns": "old"}, "nouns must be one of 'seen', 'new'"),
        ({"frame": "was"}, "frame must be one of"),
    ],
)
def test_wrong_arguments_of_clauses_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        clauses(**{"n": 3, "nouns": "seen", "seed": 0, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": np.zeros((6, 4))}, "states must have 3 dimensions"),
        ({"states": np.full((6, 3, 4), np.nan)}, "states contains NaN"),
        ({"location": np.zeros(5)}, r"location must have shape \(6,\)"),
        ({"location": np.full(6, 3)}, "location must be integers from 0 to 2, got 3"),
        ({"location": np.full(6, 0.5)}, "location must be integers from 0 to 2, got 0.5"),
        ({"labels": np.ones(6)}, "labels must be -1 and 1, both of them"),
        ({"labels": np.arange(6)}, "labels must be -1 and 1"),
        ({"labels": np.ones(7)}, r"labels must have shape \(6,\)"),
    ],
)
def test_wrong_arguments_of_the_probe_are_named(change, message):
    states = np.random.default_rng(0).standard_normal((6, 3, 4))
    right = {"states": states, "location": np.arange(6) % 3, "labels": np.array([-1, 1] * 3)}
    with pytest.raises(ValueError, match=message):
        LocationValueProbe(**{**right, **change})
    with pytest.raises(ValueError, match=r"states must have shape \(\*, \*, 4\)"):
        LocationValueProbe(**right).read(states[:, :, :3])


def test_shuffled_words_are_the_same_words_and_their_places_are_followed():
    sample = clauses(50, "seen", 0)
    mixed = shuffled(sample, 1)
    assert [sorted(words) for words in mixed.words] == [sorted(words) for words in sample.words]
    assert mixed.words != sample.words
    for name in ("places", "nouns"):
        for before, after, old, new in zip(
            sample.words, mixed.words, getattr(sample, name), getattr(mixed, name), strict=True
        ):
            assert [before[i] for i in old] == [after[i] for i in new]
    assert np.array_equal(mixed.labels, sample.labels)
