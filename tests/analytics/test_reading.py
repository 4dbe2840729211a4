"""Trace files become tables; what is no record is counted with its reason and harms nothing."""

import json
from dataclasses import replace

import pytest
from chispa import assert_df_equality

from hushcast_analytics.errors import TracesError
from hushcast_analytics.rejection_reasons import MOST
from hushcast_analytics.trace_files import SHOWN, keep, load, open_traces, read_lines
from hushcast_analytics.trace_schemas import OBSERVATIONS, REJECTED, TRUTHS
from hushcast_protocol.base.trace import SCHEMA, Observation, Truth, to_line

pytestmark = pytest.mark.spark

SENT = Observation("aa", 1.5, 2, "sent", message="ab", tokens=("cd", "ef"), next="bb")
ROSTER = Observation("aa", 1800.0, 3, "roster", relays=2, listed=("aa", "bb"))
INSTALLED = Truth("c", 0.25, 2, "installed", topic="t {", mailbox="ee", day=0, tree={"aa": None, "bb": "aa"})


def write(directory, name, *lines):
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / name).open("wb") as file:
        for line in lines:
            file.write(line if isinstance(line, bytes) else f"{line}\n".encode())


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "a run"


def test_records_arrive_as_they_were_written(spark, directory):
    write(directory, "relay-0.observations.jsonl", to_line(SENT), to_line(ROSTER))
    write(directory, "client-0.truth.jsonl", to_line(INSTALLED))
    traces = read_lines(spark, str(directory))
    assert traces.rejected.count() == 0
    sent, roster = traces.observations.orderBy("time").collect()
    assert (sent.run, sent.node, sent.time, sent.epoch, sent.kind) == ("a run", "aa", 1.5, 2, "sent")
    assert (sent.message, sent.tokens, sent.next, sent.previous) == ("ab", ["cd", "ef"], "bb", None)
    assert roster.listed == ["aa", "bb"]
    (installed,) = traces.truths.collect()
    assert (installed.topic, installed.tree) == ("t {", {"aa": None, "bb": "aa"})


GOOD = to_line(SENT)
BAD = {
    "not one record in JSON": [
        GOOD[:-1],
        GOOD[: len(GOOD) // 2],
        GOOD + GOOD,
        GOOD + GOOD[:20],
        GOOD + " junk",
        "[1]",
        "7",
        "null",
        "\x00\x00",
        GOOD.replace('"time":1.5', '"time":"soon"'),
        GOOD.replace('"tokens":["cd","ef"]', '"tokens":"cd"'),
        GOOD.replace('"epoch":2', '"epoch":99999999999999999999'),
    ],
    "an empty line": ["", "  "],
    "no schema version": ['{"node":"aa"}', GOOD.replace('"schema"', '"scheme"')],
    f"schema version 1 instead of {SCHEMA}": [GOOD.replace(f'"schema":{SCHEMA}', '"schema":1')],
    "no node": [GOOD.replace('"node":"aa",', "")],
    "no time": [GOOD.replace('"time":1.5,', "")],
    "no epoch": [GOOD.replace('"epoch":2,', "")],
    "no kind": [GOOD.replace('"kind":"sent",', "")],
    "a number out of range": [
        GOOD.replace('"epoch":2', f'"epoch":{number}') for number in (-1, MOST + 1, (1 << 63) - 1)
    ],
    "a time out of range": [GOOD.replace('"time":1.5', f'"time":{time}') for time in ("1e999", "-1e300")],
    "a list with a gap": [GOOD.replace('"cd","ef"', '"cd",null')],
    "an unknown kind": [GOOD.replace('"sent"', '"lent"'), to_line(Truth("aa", 0.0, 2, "published"))],
}


def test_what_is_no_record_is_set_aside_with_its_reason(spark, directory):
    bad = [line for lines in BAD.values() for line in lines]
    write(directory, "relay-0.observations.jsonl", GOOD, *bad, GOOD)
    traces = read_lines(spark, str(directory))
    assert traces.observations.count() == 2
    rejected = traces.rejected.collect()
    assert {(row.run, row.file) for row in rejected} == {("a run", "relay-0.observations.jsonl")}
    found = sorted((row.reason, row.line) for row in rejected)
    assert found == sorted((reason, line[:SHOWN]) for reason, lines in BAD.items() for line in lines)


@pytest.mark.parametrize("ways", [{"aa": "bb", "bb": "aa"}, {"aa": "aa"}, {"aa": "cc"}])
def test_a_tree_whose_ways_do_not_end_at_the_root_is_no_record(spark, directory, ways):
    write(directory, "client-0.truth.jsonl", to_line(replace(INSTALLED, tree=ways)), to_line(INSTALLED))
    traces = read_lines(spark, str(directory))
    assert [row.reason for row in traces.rejected.collect()] == ["a tree that is none"]
    assert traces.truths.count() == 1


WHOLE = f"{to_line(SENT)}\n{to_line(ROSTER)}\n".encode()
LENGTH = len(to_line(SENT))
ENDS = sorted(
    {*range(0, len(WHOLE), 9), LENGTH - 1, LENGTH, LENGTH + 1, LENGTH + 2, *range(len(WHOLE) - 2, len(WHOLE))}
)


def test_every_truncation_of_a_file_loses_no_whole_line(spark, directory):
    for end in ENDS:
        write(directory, f"relay-{end}.observations.jsonl", WHOLE[:end])
    traces = read_lines(spark, str(directory))
    first, second = LENGTH, len(WHOLE) - 1
    sent = sum(end >= first for end in ENDS)
    roster = sum(end >= second for end in ENDS)
    broken = sum(end not in (0, first, first + 1, second) for end in ENDS)
    assert traces.observations.where("kind = 'sent'").count() == sent
    assert traces.observations.where("kind = 'roster'").count() == roster
    assert traces.rejected.count() == broken


def test_bytes_that_are_no_text_are_set_aside(spark, directory):
    write(directory, "relay-0.observations.jsonl", b'\xff\xfe{"\xc3\n', GOOD)
    traces = read_lines(spark, str(directory))
    assert (traces.observations.count(), traces.rejected.count()) == (1, 1)


def test_directories_are_runs(spark, tmp_path):
    write(tmp_path / "many" / "one", "r.observations.jsonl", GOOD)
    write(tmp_path / "many" / "two" / "deep", "r.observations.jsonl", GOOD)
    write(tmp_path / "many" / "one", "r.truth.jsonl", to_line(INSTALLED))
    traces = read_lines(spark, str(tmp_path / "many"))
    assert {row.run for row in traces.observations.collect()} == {"one", "two-deep"}
    assert {row.run for row in traces.truths.collect()} == {"one"}


@pytest.mark.parametrize("others", [("a-b", "a/b"), (".", "many")])
def test_two_directories_never_become_one_run(spark, tmp_path, others):
    for other in others:
        write(tmp_path / "many" / other, "r.observations.jsonl", GOOD)
    with pytest.raises(TracesError, match="two directories in it make a run"):
        read_lines(spark, str(tmp_path / "many"))


def test_tables_are_kept_by_run_and_epoch_and_come_back_the_same(spark, directory, tmp_path):
    write(directory, "relay-0.observations.jsonl", to_line(SENT), to_line(ROSTER), "junk")
    write(directory, "client-0.truth.jsonl", to_line(INSTALLED))
    read, work = read_lines(spark, str(directory)), str(tmp_path / "work")
    keep(spark, str(directory), work)
    assert (tmp_path / "work" / "observations" / "run=a run" / "epoch=3").is_dir()
    kept = load(spark, work)
    assert kept.observations.columns == OBSERVATIONS.names
    assert kept.truths.columns == TRUTHS.names
    assert kept.rejected.columns == REJECTED.names
    for name in ("observations", "rejected"):
        assert_df_equality(
            getattr(read, name), getattr(kept, name), ignore_nullable=True, ignore_row_order=True
        )
    assert kept.truths.collect() == read.truths.collect()


def test_reading_a_run_again_replaces_it_and_leaves_others(spark, directory, tmp_path):
    work = str(tmp_path / "work")
    write(directory, "relay-0.observations.jsonl", GOOD)
    write(directory, "relay-0.truth.jsonl", to_line(INSTALLED))
    keep(spark, str(directory), work)
    other = tmp_path / "other"
    write(other, "relay-0.observations.jsonl", GOOD)
    write(other, "relay-0.truth.jsonl", to_line(INSTALLED))
    for _ in range(2):
        keep(spark, str(other), work)
    runs = [row.run for row in open_traces(spark, work, "unused").observations.collect()]
    assert sorted(runs) == ["a run", "other"]


def test_a_directory_without_traces_says_so(spark, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(TracesError, match=r"observations\.jsonl"):
        read_lines(spark, str(tmp_path))
    with pytest.raises(TracesError, match="no directory"):
        read_lines(spark, str(tmp_path / "missing"))


def test_a_record_has_no_more_fields_than_the_table(spark, directory):
    write(directory, "r.observations.jsonl", json.dumps({**json.loads(GOOD), "run": "forged"}))
    write(directory, "r.truth.jsonl", to_line(INSTALLED))
    assert read_lines(spark, str(directory)).observations.collect()[0].run == "a run"
