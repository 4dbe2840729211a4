"""One Spark session for all tests of the analytics: starting one takes seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hushcast_analytics.session import open_session

# Under `--import-mode=importlib` tests cannot import their neighbours else.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, quick_spark: dict[str, str]) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patched:
        for name in quick_spark.keys() - os.environ.keys():
            patched.setenv(name, quick_spark[name])
        session = open_session(
            "local[2]",
            "tests",
            spark_sql_shuffle_partitions="2",
            # To plan anew after each stage takes longer than the stage.
            spark_sql_adaptive_enabled="false",
            spark_local_dir=str(tmp_path_factory.mktemp("spark")),
            spark_sql_warehouse_dir=str(tmp_path_factory.mktemp("warehouse")),
            spark_driver_memory="2g",
        )
    yield session
    session.stop()
