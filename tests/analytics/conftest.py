"""One Spark session for all tests of the analytics: starting one takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hushcast_analytics.session import open_session

# Under `--import-mode=importlib` tests cannot import their neighbours else.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = open_session(
        "local[2]",
        "tests",
        spark_sql_shuffle_partitions="4",
        spark_local_dir=str(tmp_path_factory.mktemp("spark")),
        spark_sql_warehouse_dir=str(tmp_path_factory.mktemp("warehouse")),
        spark_driver_memory="2g",
        # Little data and long plans: to compile them takes several times as long as to interpret them.
        spark_sql_codegen_wholeStage="false",
        spark_sql_codegen_factoryMode="NO_CODEGEN",
    )
    yield session
    session.stop()
