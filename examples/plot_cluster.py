"""
A sweep on a Dask cluster, interrupted and resumed
==================================================

The driver commits each finished cell to one SQLite file. Here part of a sweep is computed as one job of an array of
two, without a driver; then two Dask workers compute exactly what is missing, and the table is the same as if one
process had done it all.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from distributed import LocalCluster

from attnlab import lab
from attnlab.lab.runner import Shard, compute_cells, missing_cells
from attnlab.lab.store import Store

if __name__ == "__main__":
    figure = lab.figures()["slr.manifold"].changed("quick", {"d": [50, 100, 200], "seeds": 2})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.sqlite"
        with Store(path, writable=True) as store:
            part = missing_cells([figure], "quick", store, shard=Shard(1, 2))
            compute_cells(part, store, lab.SerialEngine())
            print(len(part), "cells computed,", len(missing_cells([figure], "quick", store)), "missing")
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            engine = lab.DaskEngine(lab.RunningCluster(cluster.scheduler_address))
            result = lab.run(figure, engine=engine, store=path)
    print("missing:", result.missing, [(v.claim.id, v.status) for v in result.verdicts])
    for d, color in ((50, "C0"), (100, "C1"), (200, "C2")):
        row = result.records.where(d=d, seed=0).rows[0]  # one row per run; the whole cell's curves are in each
        plt.plot(row["step_number"], row["excess"].mean(axis=1), color=color, label=f"d = {d}")
    plt.xlabel("gradient step")
    plt.ylabel("risk, mean over runs")
    plt.legend()

    # %%
    # Change ``n_workers`` to 8, or give ``RunningCluster`` the address of a scheduler on your cluster.
    plt.show()
