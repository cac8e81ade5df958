"""A real SLURM on this machine: controller, node and authentication of its own, on 127.0.0.1 only; needs root."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import psutil

CONFIGURATION = """
ClusterName=probe
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
CredType=cred/munge
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=16000
PartitionName=long Nodes={host} Default=YES MaxTime=INFINITE State=UP
SlurmdParameters=config_overrides
"""


def why_not():
    """Why SLURM cannot be started here; empty if it can."""
    if missing := [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]:
        return f"SLURM is not installed ({', '.join(missing)}); make slurm-test installs it"
    return "" if os.getuid() == 0 else "SLURM's daemons need root"


@contextlib.contextmanager
def slurm(folder: Path):
    """Start the daemons; yields the environment in which SLURM's commands reach them."""
    for name in ("state", "spool", "log", "run"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    host = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, folder=folder))
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    places = {"key-file": key, "socket": "run/munge.socket", "pid-file": "run/munged.pid"}
    places |= {"log-file": "log/munged.log", "seed-file": "run/munged.seed"}
    munged = ["munged", "--force", *(f"--{name}={folder / place}" for name, place in places.items())]
    try:
        for command in (munged, ["slurmctld"], ["slurmd", "-N", host]):
            subprocess.run(command, env=environment, check=True, timeout=60, capture_output=True)
        deadline = time.monotonic() + 60
        while (
            "idle"
            not in subprocess.run(["sinfo", "-h", "-o", "%t"], env=environment, capture_output=True, text=True).stdout
        ):
            assert time.monotonic() < deadline, (folder / "log" / "slurmctld.log").read_text()[-2000:]
            time.sleep(0.5)
        yield environment
    finally:
        subprocess.run(["scancel", "--user=root"], env=environment, capture_output=True)
        for name in ("slurmd", "slurmctld", "munged"):
            with contextlib.suppress(OSError, ValueError, psutil.Error):
                psutil.Process(int((folder / "run" / f"{name}.pid").read_text())).terminate()
