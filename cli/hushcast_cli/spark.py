"""What commands that run on Spark need first: Java, and the packages of the extra `analytics`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hushcast_cli.exits import Failure
from hushcast_protocol.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("pyspark", "pandas", "pyarrow", "matplotlib")


def check_spark() -> None:
    """Raise `Failure` with what to install where Java or the extra is missing."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise Failure(f"this needs {missing[0]}: install it with `pip install 'hushcast[analytics]'`")
    if not _has_java():
        raise Failure(
            "this needs Java 17 or newer: install it with `apt-get install openjdk-17-jre-headless`"
        )


@contextmanager
def spark_session(master: str | None) -> Iterator[SparkSession]:
    """Yield a Spark session and end it; what traces do not allow is wrong usage. Raises as `check_spark`."""
    check_spark()
    from hushcast_analytics.errors import TracesError
    from hushcast_analytics.session import open_session

    session = open_session(master)
    try:
        yield session
    except TracesError as error:
        raise UsageError(str(error)) from error
    finally:
        session.stop()


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and (Path(home) / "bin" / "java").is_file())
