"""What executes cells: this process, or Dask workers here, on a running cluster, or under SLURM."""

from attnlab.lab.engine.dask import DaskEngine as DaskEngine
from attnlab.lab.engine.local import LocalWorkers as LocalWorkers
from attnlab.lab.engine.running import RunningCluster as RunningCluster
from attnlab.lab.engine.serial import Engine as Engine
from attnlab.lab.engine.serial import SerialEngine as SerialEngine
from attnlab.lab.engine.slurm import SlurmJobs as SlurmJobs
