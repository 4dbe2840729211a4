"""Traces: one JSON object a line, without what does not apply."""

import dataclasses
import json
import typing

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.trace import SCHEMA, Observation, Truth, to_line

observation_lines = st.builds(
    Observation,
    node=st.text(max_size=20),
    time=st.floats(0, 1e9),
    epoch=st.integers(0, 2**48),
    kind=st.sampled_from(["drop", "received", "sent", "roster"]),
    message=st.none() | st.text(max_size=20),
    tokens=st.none() | st.lists(st.text(max_size=8), max_size=3).map(tuple),
    popcount=st.none() | st.integers(0, 448),
)
truths = st.builds(
    Truth,
    node=st.text(max_size=20),
    time=st.floats(0, 1e9),
    epoch=st.integers(0, 2**48),
    kind=st.sampled_from(["published", "subscribed", "started"]),
    topic=st.none() | st.text(max_size=20),
    tree=st.none() | st.dictionaries(st.text(max_size=4), st.none() | st.text(max_size=4), max_size=4),
)


@pytest.mark.slow
@properties(200)
@given(observation_lines | truths)
def test_a_line_holds_exactly_what_the_record_says(record):
    line = to_line(record)
    assert line.isascii()
    assert "\n" not in line
    read = json.loads(line)
    assert read.pop("schema") == SCHEMA
    expected = {name: value for name, value in dataclasses.asdict(record).items() if value is not None}
    assert read == json.loads(json.dumps(expected))
    assert None not in read.values()


def test_the_root_of_a_tree_is_null():
    line = to_line(Truth("n", 0.0, 1, "installed", tree={"aa": None, "bb": "aa"}))
    assert json.loads(line)["tree"] == {"aa": None, "bb": "aa"}


def test_lines_of_the_central_system():
    handed = Observation("n", 1.5, 2, "handed", tokens=("cd",), pseudonym="ab", payload="ef", readable=False)
    assert json.loads(to_line(handed))["readable"] is False
    told_of = Truth("n", 1.5, 2, "registered", topic="t", pseudonym="ab", serial=1)
    assert json.loads(to_line(told_of))["serial"] == 1


def test_a_line_does_not_change():
    line = to_line(Observation("n", 1.5, 2, "sent", message="ab", tokens=("cd",), next="ef"))
    assert line == (
        '{"schema":4,"node":"n","time":1.5,"epoch":2,"kind":"sent","message":"ab","tokens":["cd"],"next":"ef"}'
    )


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            Observation,
            {"tokens": tuple[str, ...] | None, "next": str | None, "listed": tuple[str, ...] | None},
        ),
        (Truth, {"tree": dict[str, str | None] | None, "took": float | None, "topic": str | None}),
    ],
)
def test_a_line_has_the_fields_of_its_events_as_json_has_them(line, fields):
    hints = typing.get_type_hints(line)
    assert list(hints)[:4] == ["node", "time", "epoch", "kind"]
    assert {name: hints[name] for name in fields} == fields
