"""`hushcast lab filters levels`: what it tells of a file of subscriptions, and what it says of a bad one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import hushcast

from hushcast_cli.analysis import filter_levels
from hushcast_cli.main import run
from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.topics import make_topic, write_link

SPECS = ["kind", "lat:-90..90:0.001"]
LINK = write_link(make_topic("fires", SPECS))
PRIVATE = write_link(make_topic("family", SPECS, TopicSecret(bytes(range(32)))))
NARROW, MIDDLE, OTHER, WIDE = (
    'kind = "fire", lat in [60.000, 61.000]',
    "lat in [60.000, 61.000]",
    "lat in [60.500, 62.000]",
    "lat in [59.000, 63.000]",
)
HELD = [("alice", NARROW), ("bob", MIDDLE), ("carol", OTHER), ("dave", WIDE)]
NAMES = (
    *("source", "immediate_successor", "successor"),
    *("immediate_predecessor_successor", "immediate_predecessor"),
)


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path.chmod(0o600)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = [{"source": source, "topic": LINK, "where": where} for source, where in HELD]
    return written(tmp_path / "subscriptions.jsonl", *lines)


def objects(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> list[Any]:
    assert run(["filters", "levels", *map(str, arguments), "--json"]) == 0
    told = capfd.readouterr()
    return [json.loads(line) for line in told.out.splitlines()]


def refused(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert run(["filters", "levels", *map(str, arguments)]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


def test_levels_of_each_filter_in_the_order_of_first_mention(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = objects(capfd, file)
    assert [line["where"] for line in told] == [NARROW, MIDDLE, OTHER, WIDE]
    assert {line["topic"] for line in told} == {"fires"}
    assert [[line[name] for name in NAMES] for line in told] == [
        [1, 0, 0, 1, 1],
        [1, 1, 1, 2, 3],
        [1, 0, 0, 2, 3],
        [1, 2, 3, 0, 0],
    ]
    assert set(told[0]) == {"topic", "where", "sources", *NAMES}


def test_made_subscriptions_are_the_same_for_the_same_seed_and_can_be_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def made(*more: str) -> str:
        counts = ["--subscriptions", "1200", "--subscribers", "30", "--topics", "5"]
        assert run(["filters", "generate", *counts, *more]) == 0
        return capfd.readouterr().out

    lines = [json.loads(line) for line in made("--towns").splitlines()]
    assert len(lines) == 1200
    assert lines[:3] == [json.loads(line) for line in made("--towns").splitlines()[:3]]
    assert made("--seed", "2") != made()
    topics = [line["topic"] for line in lines]
    assert topics.count("events 1") > 1.5 * topics.count("events 2") > 0
    told = objects(capfd, written(tmp_path / "made", *lines[:100]))
    assert 90 < len(told) <= 100


def test_what_would_be_shown(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told = objects(capfd, file, "--k", "3", "--condition", "successor")
    both = {"topic": "fires", "where": "lat in [60.000, 62.000]"}
    assert [line["shown"] for line in told] == [both, both, both, {"topic": "fires", "where": WIDE}]
    assert [round(line["added"], 5) for line in told] == [0.01094, 0.00556, 0.00278, 0.0]
    perfect = {"added": 0.0, "perfect": True}
    # Of the first with the third, in whose place it is shown, other messages than theirs come, too.
    assert told[0]["merger"] == {"added": pytest.approx(0.00269, abs=1e-5), "perfect": False}
    assert [line["merger"] for line in told[1:]] == [perfect, perfect, None]


def test_a_workload_that_is_preloaded_counts_and_is_not_told_of(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    more = [("alice", NARROW), ("erin", NARROW), ("frank", OTHER)]
    lines = [{"source": source, "topic": LINK, "where": where} for source, where in more]
    other = written(tmp_path / "workload", *lines)
    told = objects(capfd, file, "--preload", other, "--k", "3", "--condition", "source")
    assert [line["where"] for line in told] == [NARROW, MIDDLE, OTHER, WIDE]
    # The alice of another file is somebody else.
    assert [line["sources"] for line in told] == [3, 1, 2, 1]
    assert told[0]["shown"]["where"] == NARROW
    assert told[0]["shown"] != objects(capfd, file, "--k", "3", "--condition", "source")[0]["shown"]


def test_nothing_can_be_shown_with_a_k_above_all(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["filters", "levels", str(file), "--k", "5", "--condition", "source", "--json"]) == 0
    told = capfd.readouterr()
    assert [json.loads(line)["shown"] for line in told.out.splitlines()] == [None] * 4
    assert "more than the 4 sources" in told.err


def test_the_same_filter_written_twice_is_one_and_so_is_a_subscriber(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ways = [("a", "lat in [60, 61], kind = fire"), ("b", NARROW), ("a", NARROW)]
    lines = [{"source": source, "topic": LINK, "where": where} for source, where in ways]
    as_text = {"source": "c", "topic": "fires", "attributes": SPECS[::-1], "where": NARROW}
    (line,) = objects(capfd, written(tmp_path / "f", *lines, as_text))
    assert (line["where"], line["sources"], line["source"]) == (NARROW, 3, 3)


def test_a_text_is_a_topic_without_attributes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told = objects(capfd, written(tmp_path / "f", {"source": "a", "topic": "news"}))
    assert [(line["topic"], line["where"], line["sources"]) for line in told] == [("news", "", 1)]


async def test_people_get_a_table_and_standard_input_is_read(file: Path) -> None:
    outcome = await hushcast(
        "lab", "filters", "levels", "-", "--k", "3", "--condition", "successor", stdin=file.read_bytes()
    )
    assert (outcome.code, outcome.stderr) == (0, "")
    lines = outcome.stdout.decode().splitlines()
    assert len(lines) == 3 + len(HELD)
    assert lines[2].endswith("filter → shown")
    assert lines[3].split()[:5] == ["1", "0", "0", "1", "1"]
    assert lines[3].endswith("→ fires: lat in [60.000, 62.000] (+1.1 %, an imperfect merger)")
    assert lines[4].endswith("→ fires: lat in [60.000, 62.000] (+0.56 %, a perfect merger)")
    assert lines[6].endswith("→ itself")


def test_an_empty_file_has_no_filters(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    empty = written(tmp_path / "f")
    assert objects(capfd, empty) == []
    assert run(["filters", "levels", str(empty)]) == 0
    assert "no subscriptions" in capfd.readouterr().err


GOOD = {"source": "a", "topic": "news", "where": ""}
BAD = {
    "this is no JSON": "{",
    "it is longer than 65,536 bytes": "x" * 65_537,
    "no JSON object": "[1]",
    "'source' is missing": '{"topic": "t"}',
    "'topic' is missing": '{"source": "a"}',
    "'source' is empty": '{"source": "", "topic": "t"}',
    "'sorce' is not known": '{"sorce": "a", "source": "a", "topic": "t"}',
    "'source' is no text": '{"source": 1, "topic": "t"}',
    "'attributes' is no list": '{"source": "a", "topic": "t", "attributes": "kind"}',
    "'attributes' are for a text": json.dumps({"source": "a", "topic": LINK, "attributes": ["kind"]}),
    "no attribute of this topic": '{"source": "a", "topic": "t", "where": "lat = 1"}',
    "upside down": json.dumps({"source": "a", "topic": LINK, "where": "lat in [61, 60]"}),
    "the range is upside down": '{"source": "a", "topic": "t", "attributes": ["x:1..0"]}',
    "altered or cut off": json.dumps({"source": "a", "topic": LINK[:-1]}),
    "the topic is empty": '{"source": "a", "topic": ""}',
}


@pytest.mark.parametrize("told", BAD)
def test_bad_lines_are_told_with_their_number(
    told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps(GOOD) + "\n\n" + BAD[told] + "\n")
    line = refused(capfd, file)
    assert line.startswith(f"hushcast: {file}, line 3: ")
    assert told in line
    assert LINK[:30] not in line


@pytest.mark.parametrize("line", [b"\xff\xfe\n", b'{"a":' * 3000 + b"\n", b"9" * 6000 + b"\n"])
def test_what_is_no_text_at_all_is_told_in_one_line(
    line: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f"
    file.write_bytes(line)
    assert "line 1" in refused(capfd, file)


def test_a_private_link_that_others_can_read_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "f", {"source": "a", "topic": PRIVATE})
    (line,) = objects(capfd, file)
    assert line["topic"] == "family"
    file.chmod(0o644)
    told = refused(capfd, file)
    assert "chmod 600" in told
    assert PRIVATE[:40] not in told


def test_wrong_usage(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "--k and --condition" in refused(capfd, file, "--k", "3")
    assert "--k and --condition" in refused(capfd, file, "--condition", "source")
    assert "--k" in refused(capfd, file, "--k", "0", "--condition", "source")
    assert "successor" in refused(capfd, file, "--k", "1", "--condition", "succesor")
    assert "nowhere" in refused(capfd, file.parent / "nowhere")


def test_what_takes_long_is_told(
    file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter(range(1000))
    monkeypatch.setattr(filter_levels.time, "monotonic", lambda: float(next(seconds)))
    assert run(["filters", "levels", str(file), "--json"]) == 0
    told = capfd.readouterr()
    assert "1 lines read" in told.err
    assert "3 of 4 filters" in told.err
    assert len(told.out.splitlines()) == 4
