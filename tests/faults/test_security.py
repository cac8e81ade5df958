"""Nobody but the run itself can send code to its workers."""

import os
import shutil
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
import sys
from distributed import Client
from distributed.security import Security
for address in (sys.argv[1].replace("tls://", "tcp://"), sys.argv[1]):
    try:
        security = Security.temporary() if address.startswith("tls") else None
        client = Client(address, security=security, timeout="5s")
        print("ran as uid", client.submit(__import__("os").getuid).result(timeout=10))
    except Exception as error:
        print("refused", type(error).__name__)
"""


@pytest.mark.slow
def test_another_user_of_the_machine_cannot_run_code_through_the_scheduler(tried):
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv")
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", PROBE]
    with LocalWorkers(1)() as client:
        client.wait_for_workers(1)
        command = [*other, client.scheduler.address]
        output = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd="/")
    if "refused" not in output.stdout and "ran as" not in output.stdout:
        pytest.skip(f"another user cannot start this Python: {output.stderr[-200:]}")
    assert output.stdout.count("refused") == 2
    assert "ran as" not in output.stdout
    tried("code sent to the scheduler by another user (uid 65534), plain and with a key of its own", "2 of 2 refused")
