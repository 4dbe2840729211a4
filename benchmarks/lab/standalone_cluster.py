"""A standalone cluster of Spark on loopback: a master and workers, any of which can be killed."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from benchmarks.processes import ended

READY_WITHIN = 180.0  # seconds until the master listens; other work may share the machine
_STOP_WITHIN = 60.0  # seconds for each of them to end
HERE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.cores": "1",
    # All workers are waited for, or the first might do all the work.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{READY_WITHIN:.0f}s",
}
"""Settings of Spark for who works on it."""


@dataclass(frozen=True)
class StandaloneCluster:
    """A cluster that is up."""

    master: str
    workers: tuple[subprocess.Popen[bytes], ...]


def environment() -> dict[str, str]:
    """Return what a part of the cluster, and who works on it, needs of its surroundings."""
    home = str(Path(pyspark.__file__).parent)
    return {"SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


@contextmanager
def standalone_cluster(
    directory: Path,
    workers: int = 2,
    memory: str = "1g",
    env: Mapping[str, str] = os.environ,
) -> Iterator[StandaloneCluster]:
    """Run a master and workers of one core; what they write, and keep, is in `directory`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    ends = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as running:
        running.enter_context(_part(env, directory, "master.Master", "--port", str(port), *ends))
        _wait_for(port, directory / "Master.log")
        of = []
        for number in range(workers):
            work = ("--work-dir", str(directory / f"worker-{number}"), "--cores", "1", "--memory", memory)
            of.append(running.enter_context(_part(env, directory, "worker.Worker", *ends, *work, master)))
        yield StandaloneCluster(master, tuple(of))


def write_settings(directory: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Write Spark's settings into a new `directory`; return what names them to a command.

    Not as Spark's own folder: that would stand on Java's class path, which is to be the same for all.
    """
    directory.mkdir()
    file = directory / "settings.conf"
    file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return {"PYSPARK_SUBMIT_ARGS": shlex.join(("--properties-file", str(file), "pyspark-shell"))}


@contextmanager
def _part(
    env: Mapping[str, str], directory: Path, name: str, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    home = Path(pyspark.__file__).parent
    program = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    env = {**env, **environment(), "SPARK_DAEMON_MEMORY": "256m"}
    with (directory / f"{name.rpartition('.')[2]}.log").open("ab") as log:
        process = subprocess.Popen(program, env=env, stdout=log, stderr=log, cwd=directory)  # noqa: S603
        with ended(process, _STOP_WITHIN):
            yield process


def _wait_for(port: int, log: Path) -> None:
    give_up = time.monotonic() + READY_WITHIN
    while True:
        with socket.socket() as knock:
            if knock.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > give_up:
            raise TimeoutError(log.read_text())
        time.sleep(0.2)
