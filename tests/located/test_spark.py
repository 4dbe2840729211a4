"""The engine `spark` beside `local`: the same answers and lists, and the same errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spark_same import SUBSCRIPTIONS, by_local, by_spark, feed

from hushcast_located.input_lines import read_subscriptions
from hushcast_protocol.base.errors import UsageError

pytestmark = pytest.mark.spark


def test_spark_answers_and_lists_as_one_process_does(spark, tmp_path, monkeypatch):
    import hushcast_located.spark_engine as engine

    monkeypatch.setattr(engine, "AT_ONCE", 25)  # several tasks
    found = by_spark(spark, tmp_path)
    assert found == by_local(tmp_path)
    assert len(found["answers"]) == SUBSCRIPTIONS
    wanted = {one["id"]: one["messages"] for one in map(json.loads, found["lists"])}
    assert any(wanted[f"s{at}"] for at in range(80))
    assert all(name in wanted[name] for name in wanted if name.startswith("k"))


def test_what_is_wrong_is_told_by_its_line(spark, tmp_path):
    from hushcast_located.spark_engine import match

    line = '{"id": "%s", "lat": 60.17, "lon": 24.94, "keywords": "shoe", "alpha": %s, "threshold": 0.7}\n'
    file = tmp_path / "wrong.jsonl"
    for lines in ([("a", 0.5), ("b", 0.5), ("a", 0.5)], [("a", 0.5), ("b", 7), ("a", 0.5)]):
        file.write_text("\n".join(line % one for one in lines))
        told = []
        for read in (lambda: read_subscriptions(file), lambda: match(spark, feed(), file, tmp_path, False)):
            with pytest.raises(UsageError) as raised:
                read()
            told.append(str(raised.value))
        assert told[0] == told[1]
    assert list(Path(tmp_path).glob("*.answer")) == []


def test_subscriptions_come_from_parquet_too(spark, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = by_spark(
        spark,
        tmp_path,
        "subscriptions.parquet",
        lambda rows, file: pq.write_table(pa.Table.from_pylist(rows), file),
        proofs=False,
    )
    assert found["lists"] == by_local(tmp_path)["lists"]
