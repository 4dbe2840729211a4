"""`hushcast lab purpose`: what it answers by rules in a file, and what it says of bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from running import hushcast

from hushcast_cli.main import run
from hushcast_protocol.purposes.rule_files import MAX_QUESTION, MAX_RULES

DRIVER = {
    "owner": "driver",
    "filter": "cars/7/#",
    "aip": ["operations", "marketing"],
    "pip": ["marketing/individualized"],
}
RULES: dict[str, Any] = {
    "vocabulary": ["operations/billing", "marketing/individualized", "research"],
    "strict": False,
    "reservations": [DRIVER],
}


def written(path: Path, *lines: Any) -> Path:
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return written(tmp_path / "rules.json", RULES)


def asked(*arguments: str | Path) -> int:
    return run(["purposes", *map(str, arguments)])


def refused(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert asked(*arguments) == 2
    told = capfd.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


def test_each_question_is_answered(rules: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    questions = written(
        tmp_path / "questions.jsonl",
        {"topic": "cars/7/position", "purpose": "operations/billing"},
        "\n",
        {"topic": "cars/7", "purpose": "marketing/individualized"},
        {"topic": "cars/8", "purpose": None},
        {"topic": "cars/7"},
        {"topic": "cars/#", "purpose": "operations"},
        {"topic": "cars/#", "purpose": "research"},
    )
    assert asked("decide", rules, questions, "--json") == 0
    allows = "driver's reservation of cars/7/# allows operations"
    assert [json.loads(line) for line in capfd.readouterr().out.splitlines()] == [
        {"allowed": True, "because": allows},
        {"allowed": False, "because": "driver's reservation of cars/7/# prohibits marketing/individualized"},
        {"allowed": True, "because": "nobody reserved it"},
        {
            "allowed": False,
            "because": "driver's reservation of cars/7/# asks for a purpose, and none was given",
        },
        {"allowed": True, "because": allows},
        {
            "allowed": False,
            "because": "for a part of it, driver's reservation of cars/7/# does not allow research",
        },
    ]
    assert asked("decide", rules, questions) == 0
    first, second, third, *_ = capfd.readouterr().out.splitlines()
    assert first == f"allowed  cars/7/position for operations/billing: {allows}"
    assert second.startswith("refused  cars/7 for marketing/individualized: driver's reservation")
    assert third == "allowed  cars/8 without a purpose: nobody reserved it"


def test_strict_rules_and_the_shipped_vocabulary(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reservation = {"owner": "a", "filter": "a", "aip": ["marketing"], "pip": ["marketing/advertising"]}
    rules = written(tmp_path / "rules.json", {"strict": True, "reservations": [reservation]})
    questions = written(
        tmp_path / "q.jsonl",
        {"topic": "a", "purpose": "marketing/direct-marketing"},
        {"topic": "a", "purpose": "marketing/advertising/personalised-advertising"},
        {"topic": "b", "purpose": "marketing"},
    )
    assert asked("decide", rules, questions, "--json") == 0
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["allowed"] for line in told] == [True, False, False]
    assert told[2]["because"] == "nobody reserved it, and the rules are strict"


def test_reservations_in_a_file_have_no_order(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of two of one owner for one filter both count, and a note says so."""
    random = Random(20)
    owners, filters = ["a", "b"], ["x/#", "x/+", "x/y", "#"]
    reservations = [
        {
            "owner": random.choice(owners),
            "filter": random.choice(filters),
            "aip": random.sample(["operations", "research", "marketing"], 2),
            "pip": random.sample(["operations/billing", "marketing/individualized"], number % 5 == 0),
        }
        for number in range(12)
    ]
    questions = written(
        tmp_path / "q.jsonl",
        *(
            {"topic": topic, "purpose": purpose}
            for topic in ("x", "x/y", "x/z", "x/+", "q")
            for purpose in ("research", "operations/billing", "marketing", None)
        ),
    )
    answers = set()
    for _ in range(4):
        random.shuffle(reservations)
        rules = written(tmp_path / "rules.json", RULES | {"reservations": reservations})
        assert asked("decide", rules, questions, "--json") == 0
        told = capfd.readouterr()
        answers.add(told.out)
        assert "more than once: here all of these count" in told.err
    assert len(answers) == 1
    assert '"allowed": true' in told.out
    assert '"allowed": false' in told.out


async def test_questions_from_standard_input(rules: Path) -> None:
    done = await hushcast("lab", "purpose", "decide", rules, "-", "--json", stdin=b'{"topic": "a"}\n')
    assert (done.code, done.objects) == (0, [{"allowed": True, "because": "nobody reserved it"}])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            '{"topic": "a", "purpose": "reserch"}',
            "'reserch' is not in the vocabulary: did you mean research?",
        ),
        ('{"topic": "a", "purpose": "billing"}', "did you mean operations/billing?"),
        ('{"topic": "a", "purpose": "Research"}', "names are in lower case: research"),
        ('{"topic": "a", "purpose": 7}', "'purpose' is no text"),
        ('{"topic": "a/#/b", "purpose": null}', "topic 'a/#/b': not a topic filter"),
        (json.dumps({"topic": "/".join("a" * 33)}), "it has 33 levels, and 32 are the most"),
        ('{"topic": "\\ud800"}', "'topic' is no valid Unicode"),
        ('{"purpose": "research"}', "'topic' is missing"),
        ('{"topic": "a", "purpos": "research"}', "'purpos' is not known"),
        ('{"topic": "a", "topic": "b"}', "'topic' stands twice in one object"),
        ('["a"]', "a question is an object"),
        ("{", "this is no JSON"),
        ('{"topic": NaN}', "NaN is no JSON"),
        ("[" * 5000, "this is no JSON"),
        ('{"topic": "a"}' + " " * MAX_QUESTION, "it has more than 16,384 bytes"),
    ],
)
def test_what_is_wrong_with_a_question_is_told_with_its_line(
    rules: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], line: str, why: str
) -> None:
    questions = written(tmp_path / "questions.jsonl", "\n", line)
    told = refused(capfd, "decide", rules, questions)
    assert told.startswith(f"hushcast: {questions}, line 2: ")
    assert why in told


def test_what_comes_before_a_bad_question_is_answered(
    rules: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    questions = written(tmp_path / "questions.jsonl", {"topic": "a"}, "{")
    assert asked("decide", rules, questions) == 2
    assert capfd.readouterr().out == "allowed  a without a purpose: nobody reserved it\n"


def rule_with(**fields: Any) -> dict[str, Any]:
    return RULES | {"reservations": [DRIVER, DRIVER | {"filter": "x"} | fields]}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (rule_with(filter="a/#/b"), "reservations #2: filter 'a/#/b': not a topic filter: `+` and `#` fill"),
        (rule_with(filter="/".join("a" * 33)), "reservations #2: filter 'a/"),
        (rule_with(filter="$share/g/a"), "reserve what stands behind $share/GROUP/"),
        (
            rule_with(aip=["marketting"]),
            "reservations #2: aip: 'marketting' is not in the vocabulary: did you",
        ),
        (
            rule_with(pip=["/".join("a" * 9)]),
            "reservations #2: pip: 'a/a/a/a/a/a/a/a/a' is no purpose: it has 9",
        ),
        (rule_with(aip="research"), "reservations #2: 'aip' is no list of purposes"),
        (rule_with(aip=[1]), "'aip' is no text"),
        (rule_with(owner=""), "reservations #2: 'owner' '' has 1 to 256 characters"),
        (rule_with(owner="a\nb"), "none of them control"),
        (rule_with(pips=[]), "reservations #2: 'pips' is not known, a reservation has 'owner', 'filter'"),
        (RULES | {"reservations": [{"owner": "a"}]}, "reservations #1: 'filter' is missing"),
        (RULES | {"reservations": [7]}, "reservations #1: a reservation is an object"),
        (RULES | {"reservations": {}}, "'reservations' is no list"),
        (RULES | {"strict": "yes"}, "'strict' is true or false"),
        (RULES | {"vocabulary": "research"}, "'vocabulary' is no list of purposes"),
        (RULES | {"vocabulary": []}, "'vocabulary': a vocabulary has one purpose at least"),
        (RULES | {"vocabulary": ["A"]}, "'vocabulary': 'A' is no purpose: names are in lower case: a"),
        (RULES | {"vocabulary": [f"a{n}" for n in range(513)]}, "512 purposes at most"),
        ({"strict": False}, "'reservations' is missing"),
        (RULES | {"reservation": []}, "'reservation' is not known, a file of rules has"),
        ([], "a file of rules is an object"),
        ('{\n "strict": false,\n "reservations": [}\n', "line 3, column 19: this is no JSON"),
        ("\ufeff\x00", "it begins with a byte order mark"),
    ],
)
def test_what_is_wrong_with_rules_is_told_with_its_place(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], given: Any, why: str
) -> None:
    rules = written(tmp_path / "rules.json", given)
    told = refused(capfd, "decide", rules, written(tmp_path / "questions.jsonl"))
    assert told.startswith(f"hushcast: {rules}: ")
    assert why in told


def test_files_that_are_too_large_or_not_there(
    rules: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    large = tmp_path / "large"
    with large.open("wb") as stream:
        stream.truncate(MAX_RULES + 1)
    assert "it has more than 16,777,216 bytes" in refused(capfd, "decide", large, rules)
    assert "it has more than 262,144 bytes" in refused(capfd, "vocabulary", "--file", large)
    assert asked("decide", tmp_path / "none", rules) == 1
    assert "none: No such file or directory" in capfd.readouterr().err


def test_effective_purposes(rules: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert asked("effective", rules, "cars/7") == 0
    assert capfd.readouterr().out.split() == ["marketing", "operations", "operations/billing"]
    assert asked("effective", rules, "cars/+", "--json") == 0
    assert json.loads(capfd.readouterr().out) == {
        "topic": "cars/+",
        "allowed": ["marketing", "operations", "operations/billing"],
    }
    assert asked("effective", rules, "cars/8") == 0
    assert len(capfd.readouterr().out.split()) == 5
    assert "not a topic filter" in refused(capfd, "effective", rules, "a#")


def test_vocabularies(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert asked("vocabulary") == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 95
    at = lines.index("marketing")
    assert lines[at : at + 3] == ["marketing", "  advertising", "    personalised-advertising"]
    own = written(tmp_path / "own.txt", "# ours\noperations/billing\nresearch\n")
    assert asked("vocabulary", "--file", own) == 0
    assert capfd.readouterr().out == "operations\n  billing\nresearch\n"
    assert asked("vocabulary", "--file", own, "--json") == 0
    assert json.loads(capfd.readouterr().out) == {
        "vocabulary": ["operations", "operations/billing", "research"]
    }
    written(own, "a\n\nB\n")
    assert refused(capfd, "vocabulary", "--file", own) == (
        f"hushcast: {own}: line 3: 'B' is no purpose: names are in lower case: b"
    )
    own.write_bytes(b"\xff")
    assert "no text in UTF-8" in refused(capfd, "vocabulary", "--file", own)
