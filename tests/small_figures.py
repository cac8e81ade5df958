"""Figures cut down to a few small cells, for tests that go through all of them."""

import dataclasses

# Values of an axis that are kept: enough for a line.
KEPT = 2
# Sizes at which a cell takes milliseconds: simulations only have to run.
SIZES = {
    "batch_size": 2,
    "d": 8,
    "draws": 64,
    "heads": 20,
    "inits": 2,
    "iterations": 4,
    "log_every": 20,
    "n": 300,
    "n_draws": 128,
    "n_max": 128,
    "n_steps": 60,
    "n_test": 40,
    "nodes": 4,
    "points": 8,
    "replicates": 4,
    "runs": 2,
    "samples": 32,
    "side": 5,
    "starts": 1,
    "steps": 20,
    "time": 1.0,
}
# Theory that takes seconds a point.
FEWER = {
    "mha.samples": {"n": [24]},
    "rfa.correlations": {"model": ["rfa", "rfmlp"]},
    "rfa.keys": {"model": ["rfa", "rfmlp"]},
    "rfa.heads_needed": {"target": ["f1_p2"], "n": [64]},
    "smi.sign_committee": {"alpha": [0.5]},
    "smi.skip_thresholds": {"skip": [1.0]},
    "smi.two_layers": {"alpha": [0.2]},
}


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_numeric(value):
    return is_number(value) or (isinstance(value, list) and all(map(is_number, value)))


def smaller(name, value):
    """A small value of a knob; the values of an axis stay different."""
    if not is_numeric(value):
        return value
    if not isinstance(value, list):
        return min(value, SIZES.get(name, value))
    return [min(v, SIZES.get(name, v) + 2 * i) for i, v in enumerate(value[:KEPT])]


def small(figure):
    """The figure with one replicate, short axes and small sizes."""
    few = FEWER.get(figure.name, {})
    grids = [
        dataclasses.replace(
            grid.changed(few), seeds=1, params={k: smaller(k, v) for k, v in grid.changed(few).params.items()}
        )
        for grid in figure.scales["quick"]
    ]
    return dataclasses.replace(figure, scales={"quick": grids}, claims=())
