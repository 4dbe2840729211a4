"""Surroundings that would stop Spark are told apart without starting it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
import pytest

from hushcast_analytics import spark_session


def test_where_tmp_takes_no_programs_libraries_go_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert spark_session._library_folder() is None
    mounted, real = {"/tmp": os.ST_NOEXEC}, os.statvfs

    def flagged(folder: str) -> os.statvfs_result:
        fields = list(real(folder))
        fields[8] |= mounted.get(folder, 0)
        return os.statvfs_result(fields)

    monkeypatch.setattr(os, "statvfs", flagged)
    assert spark_session._library_folder() == str(tmp_path)
    mounted[str(tmp_path)] = os.ST_NOEXEC
    assert spark_session._library_folder() not in (None, "/tmp", str(tmp_path))


@pytest.mark.parametrize(("alone", "submitted"), [(True, False), (False, False), (False, True)])
def test_another_spark_and_python_are_passed_over_but_where_they_were_chosen(
    alone: bool, submitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/theirs")
    monkeypatch.setenv("PYSPARK_PYTHON", "python2")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    spark_session._prepare(alone, submitted)
    ours = str(Path(pyspark.__file__).parent)
    assert os.environ["SPARK_HOME"] == ("/theirs" if submitted else ours)
    assert os.environ["PYSPARK_PYTHON"] == (sys.executable if alone else "python2")
    assert os.environ.pop("SPARK_LOCAL_IP", None) == ("127.0.0.1" if alone else None)
