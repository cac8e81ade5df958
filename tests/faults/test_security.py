"""Nobody but the run itself can send code to its workers."""

import os
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import psutil
import pytest

from attnlab.lab import LocalWorkers


def listeners(process):
    found = [c for p in [process, *process.children(recursive=True)] for c in p.net_connections(kind="inet")]
    return sorted({(c.laddr.ip, c.laddr.port) for c in found if c.status == psutil.CONN_LISTEN})


def refuses_without_key(port):
    """Whether a TLS server ends the connection of a client that has no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain, context.wrap_socket(plain) as secure:
            secure.sendall(b"x")
            return secure.recv(100) == b""
    except OSError:  # ssl.SSLError is one
        return True


def serves_nothing(port):
    """Whether an HTTP server answers every path with 404."""
    for path in ("/", "/status", "/info/main/workers.html", "/metrics", "/health", "/json/identity.json"):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5)
            return False
        except urllib.error.HTTPError as error:
            if error.code != 404:
                return False
        except OSError:
            return False
    return True


def test_every_listener_of_a_run_is_on_loopback_and_asks_for_the_key(tried):
    before = set(listeners(psutil.Process()))
    with LocalWorkers(1)() as client:
        client.wait_for_workers(1)
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        found = [listener for listener in listeners(psutil.Process()) if listener not in before]
        assert len(found) >= 3  # scheduler, nanny, worker
        assert {address for address, _ in found} == {"127.0.0.1"}
        for _, port in found:
            assert serves_nothing(port) or refuses_without_key(port)
    tried("connections to every port of a local run, without its key", f"{len(found)} of {len(found)} refused or empty")


PROBE = """
import os, sys
from distributed import Client
from distributed.security import Security
own = Security.temporary()
# all modules are read by now: the other user may be unable to read them
os.setgroups([]), os.setgid(65534), os.setuid(65534)
for address in sys.argv[1:]:
    try:
        client = Client(address, security=own if address.startswith("tls") else None, timeout="5s")
        print("ran as uid", client.submit(os.getuid).result(timeout=60))
    except (OSError, TimeoutError):
        print("refused")
"""


def attack(*addresses):
    """What another user of the machine gets by sending code to these schedulers."""
    command = [sys.executable, "-c", PROBE, *addresses]
    found = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd="/")
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_another_user_of_the_machine_cannot_run_code_through_the_scheduler(tried):
    from distributed import LocalCluster

    with LocalWorkers(1)() as client:
        client.wait_for_workers(1)
        address = client.scheduler.address
        refused = attack(address.replace("tls://", "tcp://"), address)
        assert refused == ["refused", "refused"]
    # the attack itself works: a scheduler without keys runs the code as its owner
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as open_to_all:
        assert attack(open_to_all.scheduler_address) == [f"ran as uid {os.getuid()}"]
    tried(
        "code sent to the scheduler by another user (uid 65534), plain and with a key of its own",
        "refused",
        times=len(refused),
    )
