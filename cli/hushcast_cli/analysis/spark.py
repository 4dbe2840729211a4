"""What commands that run on Spark need: its packages and Java, a master that answers, its noise kept away."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.exits import Failure
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.extras import how_to_get

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("pyspark", "pandas", "pyarrow", "matplotlib")
_THREADS = r"([1-9]\d*|\*)"
_MASTERS = re.compile(
    rf"local|local\[{_THREADS}(,\d+)?\]|local-cluster\[\d+,\d+,\d+\]|spark://[^\s/:,]+:\d+(,[^\s/:,]+:\d+)*"
    r"|yarn|k8s://\S+"
)
_CAUSES = {
    "UnsupportedClassVersionError": "this Java is too old: install Java 17 or newer, or set JAVA_HOME to it",
    "basedir must be absolute: ?": "the user that runs this has no name: add it to /etc/passwd",
    "invalid null input: name": "the user that runs this has no name: add it to /etc/passwd",
    "unresolved dependency": "spark.jars.packages names what cannot be fetched: see spark-defaults.conf",
}
"""What stands in Spark's output, and what that means."""
MASTER_PATIENCE = 3.0  # seconds for a cluster's master to take a connection; Spark itself tries for 70
WORKER_PATIENCE = 60.0  # seconds for a cluster to give us a worker; Spark itself waits for ever, silently


def _check_form(context: click.Context, parameter: click.Parameter, master: str | None) -> str | None:
    if master is not None and _MASTERS.fullmatch(master) is None:
        raise click.BadParameter(
            f"{master!r} is none of Spark's masters: give local[2] for two cores of this machine, or"
            " spark://HOST:7077 for a cluster",
            context,
            parameter,
        )
    return master


master_option = click.option(
    "--master",
    metavar="URL",
    callback=_check_form,
    help="Spark's master, `spark://HOST:7077`; unless given, what Spark's own settings say, or this machine.",
)


def check_spark() -> None:
    """Raise `Failure` with the way out where Java, the extra or the loopback device is missing."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise Failure(f"this needs {missing[0]}: {how_to_get('analytics')}")
    try:
        with socket.create_server(("127.0.0.1", 0)) as here:
            socket.create_connection(here.getsockname(), MASTER_PATIENCE).close()
    except OSError as error:
        raise Failure(
            "this needs 127.0.0.1, over which Python and Java talk: `ip link set lo up` brings it"
        ) from error
    _check_java_home()
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise Failure(
            "this needs Java 17 or newer: install it with `apt-get install openjdk-17-jre-headless`"
        )


def check_master(master: str | None) -> None:
    """Raise `Failure` if none of a standalone cluster's masters takes a connection."""
    if master is None or not master.startswith("spark://"):
        return
    refusal = ""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, min(int(port), 65535)), MASTER_PATIENCE).close()
            return
        except OSError as error:
            refusal = error.strerror or "nothing answers"
    raise Failure(
        f"master {master}: {refusal}. Start a master there, or give --master local[2] to use this machine"
    )


@contextmanager
def told() -> Iterator[None]:
    """Turn what traces do not allow into wrong usage."""
    from hushcast_analytics.errors import TracesError

    try:
        yield
    except TracesError as error:
        raise UsageError(str(error)) from error


@contextmanager
def spark_session(
    master: str | None, progress: Callable[[str], None] = lambda text: None, *, rows: int | None = None
) -> Iterator[SparkSession]:
    """Yield a Spark session and end it; what traces do not allow is wrong usage.

    What Spark and Java write goes into a file, which is kept and named where Spark fails. `rows` are
    about how many there are to read (`open_session`). Raises as `check_spark`, `check_master`, and `Failure`.
    """
    check_spark()
    check_master(master)  # before PySpark is loaded, which takes a second
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from hushcast_analytics.spark_session import default_master, open_session, wait_for_workers

    if master is None:
        check_master(default_master())
    handle, name = tempfile.mkstemp(prefix="hushcast-spark-", suffix=".log")
    log, session, failed = Path(name), None, False
    try:
        progress("starting Spark")
        session = open_session(master, rows=rows, log=handle)
        if not wait_for_workers(session, WORKER_PATIENCE, progress):
            raise Failure(
                f"master {session.sparkContext.master}: no worker of it is free: start one, or wait"
            )
        with told():
            yield session
    except (PySparkException, Py4JError, ConnectionError) as error:
        failed = True
        # Where Java did not come up, what it wrote says why.
        text = log.read_text(errors="replace") if "JAVA_GATEWAY_EXITED" in str(error) else ""
        reason = _reason(text or str(error)) or type(error).__name__
        with log.open("a") as file:
            file.write("".join(traceback.format_exception(error)))
        raise Failure(f"Spark failed: {reason}; what it wrote is in {log}") from error
    finally:
        if session is not None:
            with suppress(Py4JError, PySparkException, OSError):  # it may be what failed
                session.stop()
        os.close(handle)
        if not failed:
            log.unlink(missing_ok=True)


def _reason(text: str) -> str:
    """Return the line of what Spark says that tells what happened: its innermost cause, if any is known."""
    for sign, cause in _CAUSES.items():
        if sign in text:
            return cause
    lines = [line.strip().removeprefix('Exception in thread "main" ') for line in text.splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    thrown = [line for line in lines if re.match(r"[\w.$]+(Exception|Error): ", line)]
    found = (causes[-1:] or thrown[:1] or [line for line in lines if line][:1] or [""])[0]
    return found.removeprefix(": ")[:200]


def _check_java_home() -> None:
    """Raise `Failure` for a JAVA_HOME without Java: Spark looks nowhere else."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home) / "bin" / "java", os.X_OK):
        raise Failure(f"JAVA_HOME={home} has no bin/java: correct it, or unset it to use that of the PATH")
