"""A cluster that somebody else started."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from attnlab.lab.engine.dask import Cluster
from attnlab.lab.engine.quiet import quiet_dask
from attnlab.lab.errors import LabError


@dataclass(frozen=True)
class RunningCluster(Cluster):
    """A Dask scheduler that is already there; ``tls`` holds the files ca, cert and key when it asks for them."""

    address: str
    tls: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Any]:
        """Connect; the cluster stays when we leave."""
        from distributed import Client
        from distributed.security import Security

        security = None
        if self.tls:
            security = Security(
                tls_ca_file=self.tls["ca"],
                tls_client_cert=self.tls["cert"],
                tls_client_key=self.tls["key"],
                require_encryption=True,
            )
        with quiet_dask():
            try:
                client = Client(self.address, security=security, timeout="20s")
            except (OSError, TimeoutError) as error:
                raise LabError(f"no Dask scheduler answers at {self.address}: {error}") from error
            with client:
                yield client
