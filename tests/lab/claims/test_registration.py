"""Claims are registered before they are measured; a change of one shows."""

import dataclasses
import datetime

import pytest
from toy_figures import CLAIM, FIGURE

from attnlab.common.claim import at_most
from attnlab.common.statistics import mean
from attnlab.lab import registry
from attnlab.lab.claims import registration
from attnlab.lab.errors import StoreUnwritable


def test_attnlab_s_claims_are_as_registered():
    found = registration.differences(registry.figures().values(), registration.read())
    assert not found, "run 'attnlab claims register' and say in the commit why the claims changed"


def test_the_file_holds_no_claim_that_is_gone():
    ids = {claim.id for figure in registry.figures().values() for claim in figure.claims}
    assert set(registration.read()) == ids


def below(limit):
    def share(records):
        """A share."""
        return float(sum(row["error"] < limit for row in records))

    return mean(share)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"says": "Something else"}, "says"),
        ({"holds": at_most(0.02)}, "holds"),
        ({"because": "another reason"}, "because"),
        ({"kind": "exploratory"}, "kind"),
        ({"replicates": 4}, "replicates"),
        ({"registered": {"quick": "fails"}}, "expected"),
    ],
)
def test_every_part_of_a_claim_counts(tmp_path, change, named):
    registration.write(tmp_path / "claims.toml", [FIGURE])
    other = dataclasses.replace(FIGURE, claims=(dataclasses.replace(CLAIM, **change),))
    found = registration.differences([other], registration.read_file(tmp_path / "claims.toml"))
    assert found["toy.1"].endswith(f": {named}")


def test_more_seeds_are_a_change():
    other = FIGURE.changed("quick", {"seeds": 5})
    assert registration.digest(CLAIM, FIGURE) != registration.digest(CLAIM, other)


def test_the_code_and_the_held_values_of_a_statistic_count():
    digests = {
        registration.digest(dataclasses.replace(CLAIM, statistic=statistic), FIGURE)
        for statistic in (below(0.1), below(0.2), below(0.1))
    }
    assert len(digests) == 2


def test_unchanged_claims_keep_their_date(tmp_path, monkeypatch):
    file = tmp_path / "claims.toml"
    second = dataclasses.replace(CLAIM, id="toy.2")
    registration.write(file, [dataclasses.replace(FIGURE, claims=(CLAIM, second))])
    day = registration.today()
    monkeypatch.setattr(registration, "today", lambda: day + datetime.timedelta(days=3))
    moved = dataclasses.replace(second, holds=at_most(0.5))
    changed = registration.write(file, [dataclasses.replace(FIGURE, claims=(CLAIM, moved))])
    assert list(changed) == ["toy.2"]
    dates = [entry["registered"] for entry in registration.read_file(file).values()]
    assert dates == [day, day + datetime.timedelta(days=3)]
    assert registration.write(file, [FIGURE]) == {"toy.2": "is gone"}


def test_the_file_of_a_system_holds_its_own_claims_alone(tmp_path, monkeypatch):
    files = {name: tmp_path / f"{name}.toml" for name in ("toy", "other", "empty")}
    monkeypatch.setattr(registration, "own_files", lambda name: files)
    foreign = dataclasses.replace(FIGURE, name="other.figure", claims=(dataclasses.replace(CLAIM, id="other.1"),))
    assert set(registration.register([FIGURE, foreign])) == {"toy.1", "other.1"}
    assert list(registration.read_file(files["toy"])) == ["toy.1"]
    assert list(registration.read_file(files["other"])) == ["other.1"]
    assert not files["empty"].exists()
    assert list(registration.read()) == ["toy.1", "other.1"]


def test_an_unwritable_file_is_one_line(tmp_path):
    with pytest.raises(StoreUnwritable, match="cannot write the registered claims"):
        registration.write(tmp_path / "absent" / "claims.toml", [FIGURE])
