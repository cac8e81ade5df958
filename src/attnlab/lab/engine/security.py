"""Who may talk to a cluster of ours: whoever has its key, which is made for one run and shown to nobody else.

A Dask scheduler runs the code it is sent. Without TLS any user of the machine could run code as us.
"""

from __future__ import annotations

from typing import Any

from attnlab.lab.errors import UsageError

# Nothing is served over HTTP: neither a dashboard nor what Dask shows beside it.
NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


def one_run() -> Any:
    """Keys and certificates of a single run, in memory; connections without them are refused."""
    from distributed.security import Security

    try:
        return Security.temporary()
    except ImportError as error:
        raise UsageError("workers need keys of their own: pip install cryptography") from error
