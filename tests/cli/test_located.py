"""`hushcast located`: a feed from files to files, and what is said of what is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hushcast_cli.main import run

HERE = {"lat": 60.17, "lon": 24.94}
WANTED = HERE | {"keywords": ["shoe", "discount"], "alpha": 0.5, "threshold": 0.7}
MESSAGES: list[dict[str, Any]] = [
    HERE | {"id": "near", "text": "Shoe discount, today only"},
    {"id": "espoo", "lat": 60.2055, "lon": 24.6559, "text": "Shoe repair"},
    {"id": "far", "lat": 52.52, "lon": 13.40, "text": "Shoe discount"},
    HERE | {"id": 4, "text": "Strömming at the market"},
]
SUBSCRIPTIONS = [
    WANTED | {"id": "alice"},
    {"id": "bob", "lat": -33, "lon": 151, "keywords": "surf", "alpha": 0.5, "threshold": 0.7},
]


def lines(path: Path, *objects: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    return path


class Feed:
    """A folder with an owner's key, messages and subscriptions, and the commands on them."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capfd = folder, capfd
        self.messages = lines(folder / "messages.jsonl", *MESSAGES)
        self.subscriptions = lines(folder / "subscriptions.jsonl", *SUBSCRIPTIONS)
        self.owner = self.told("key", "new", folder / "shops.key")["owner"]

    def run(self, *arguments: object) -> tuple[int, str, str]:
        code = run(["located", *map(str, arguments)])
        told = self._capfd.readouterr()
        return code, told.out, told.err

    def told(self, *arguments: object) -> dict[str, Any]:
        code, out, err = self.run(*arguments, "--json")
        assert (code, err) == (0, "")
        (line,) = out.splitlines()
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def refused(self, *arguments: object) -> str:
        code, out, err = self.run(*arguments)
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        return line

    def batch(self, *more: object) -> tuple[object, ...]:
        given = "batch", "--key", self.folder / "shops.key", "--in", self.messages
        return *given, "--interval", 300, "--out", self.folder / "batches", *more

    def match(self, *more: object) -> tuple[object, ...]:
        given = "match", "--batch", self.folder / "batches", "--subscriptions", self.subscriptions
        return *given, "--out", self.folder / "answers", *more

    def verify(self, answer: str, *more: object, subscription: object = WANTED) -> tuple[object, ...]:
        asked = subscription if isinstance(subscription, str) else json.dumps(subscription)
        given = "verify", "--owner", self.owner, "--subscription", asked
        return *given, self.folder / "answers" / f"{answer}.answer", *more


@pytest.fixture
def feed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Feed:
    return Feed(tmp_path, capfd)


def test_from_messages_to_what_was_wanted(feed: Feed) -> None:
    made = feed.told(*feed.batch("--start", 1_700_000_100))
    batches = feed.folder / "batches"
    assert made == {
        "file": str(batches / "1.batch"),
        "number": 1,
        "start": 1_700_000_100,
        "seconds": 300,
        "messages": 4,
        "weights": 1,
    }
    answered = feed.told(*feed.match())
    sizes = [(feed.folder / "answers" / f"{name}.answer").stat().st_size for name in ("alice", "bob")]
    assert answered == {
        "out": str(feed.folder / "answers"),
        "number": 1,
        "answers": 2,
        "messages": 1,
        "bytes": sum(sizes),
    }
    assert feed.told(*feed.verify("alice")) == {"verified": True, "messages": ["near"], "problem": None}
    nothing = feed.told(*feed.verify("bob", subscription=SUBSCRIPTIONS[1]))
    assert nothing == {"verified": True, "messages": [], "problem": None}
    code, out, _ = feed.run(*feed.verify("alice"))
    assert (code, out.splitlines()) == (
        0,
        [
            "batch 1, 300 s from 2023-11-14 22:15:00 UTC: verified, 1 of 4 messages",
            "near  60.17000 24.94000  Shoe discount, today only",
        ],
    )


def test_what_does_not_hold_ends_with_4(feed: Feed) -> None:
    feed.told(*feed.batch())
    feed.told(*feed.match())
    said = json.dumps({"verified": False, "messages": [], "problem": "other subscription"}) + "\n"
    code, out, err = feed.run(*feed.verify("bob", "--json"))
    assert (code, out) == (4, said)
    assert "bob.answer does not hold: other subscription (it answers another subscription)\n" in err
    answer = feed.folder / "answers" / "alice.answer"
    answer.write_bytes(answer.read_bytes().replace(b"Shoe discount, today", b"Shoe discount, never"))
    code, out, err = feed.run(*feed.verify("alice"))
    assert (code, out) == (4, "")
    assert "does not hold: changed" in err
    answer.write_bytes(b"")
    assert "does not hold: form" in feed.run(*feed.verify("alice"))[2]


def test_batches_are_chained_and_a_gap_is_told(feed: Feed) -> None:
    held = []
    for number in (1, 2, 3):
        assert feed.told(*feed.batch())["number"] == number
        feed.told(*feed.match())
        answer = feed.folder / "answers" / "alice.answer"
        held.append(answer.rename(answer.with_name(f"{number}.answer")))
    assert feed.told(*feed.verify("2", "--after", held[0]))["verified"]
    for answer_, after, problem in (("3", 0, "missing interval"), ("1", 1, "old root"), ("2", 1, "old root")):
        code, out, _ = feed.run(*feed.verify(answer_, "--after", held[after], "--json"))
        assert (code, json.loads(out)["problem"]) == (4, problem)
    feed.told(*feed.match("--number", 2))
    assert feed.told(*feed.verify("alice", "--after", held[0]))["verified"]
    held[0].write_bytes(b"?")
    assert "is no answer from this owner's feed: form" in feed.refused(*feed.verify("2", "--after", held[0]))


def test_weights_have_versions(feed: Feed) -> None:
    feed.told(*feed.batch("--max-distance", 10))
    assert feed.told(*feed.batch())["weights"] == 1
    assert "give --new-weights, too" in feed.refused(*feed.batch("--max-distance", 20))
    assert feed.told(*feed.batch("--new-weights", "--max-distance", 2000))["weights"] == 2
    wide = WANTED | {"id": "wide", "alpha": 0, "threshold": 0.4}
    lines(feed.subscriptions, wide)
    feed.told(*feed.match())
    found = feed.told(*feed.verify("wide", subscription=wide))["messages"]
    assert sorted(found) == ["4", "espoo", "far", "near"]
    feed.told(*feed.match("--number", 1))
    assert sorted(feed.told(*feed.verify("wide", subscription=wide))["messages"]) == ["4", "near"]


def test_another_key_goes_on_with_a_feed_and_a_revoked_one_with_none(feed: Feed) -> None:
    second = feed.folder / "second.key"
    owner = feed.told("key", "new", second)["owner"]
    old = feed.folder / "shops.key"
    feed.told(*feed.batch())
    assert "another owner's" in feed.refused(*feed.batch("--key", second))
    assert feed.told(*feed.batch("--key", second, "--former-key", old))["weights"] == 2
    assert feed.told(*feed.batch("--key", second))["number"] == 3
    assert "has handed over to another" in feed.refused(*feed.batch())
    feed.told(*feed.match())
    for known in (feed.owner, owner):
        assert feed.told(*feed.verify("alice", "--owner", known))["messages"] == ["near"]
    given = "revoke", "--key", second, "--batch", feed.folder / "batches"
    assert feed.told(*given) == {"number": 4}
    assert "was revoked" in feed.refused(*given)
    assert "was revoked" in feed.refused(*feed.batch("--key", second))
    feed.told(*feed.match())
    assert feed.told(*feed.verify("alice"))["messages"] == []


def test_an_interval_without_messages_is_answered_too(feed: Feed) -> None:
    feed.messages.write_text("\n\n")
    assert feed.told(*feed.batch())["messages"] == 0
    feed.told(*feed.match())
    assert feed.told(*feed.verify("alice")) == {"verified": True, "messages": [], "problem": None}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            {"id": "5", "lat": 91, "lon": 2, "text": "x"},
            "line 5: latitude 91.0 and longitude 2.0 are no place",
        ),
        ({"id": "5", "lat": float("nan"), "lon": 2, "text": "x"}, "line 5: NaN is no number"),
        ({"id": "near", "lat": 1, "lon": 2, "text": "x"}, "line 5: 'id' 'near' stands in a line before"),
        ({"id": "5", "lat": 1, "lon": 2}, "line 5: 'text' is missing"),
    ],
)
def test_a_line_that_is_wrong_stops_a_batch(line: dict[str, Any], told: str, feed: Feed) -> None:
    lines(feed.messages, *MESSAGES, line)
    assert told in feed.refused(*feed.batch())
    assert not (feed.folder / "batches").exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"alpha": 1.5}, "line 2: 'alpha' is 1.5: from 0 to 1"),
        ({"keywords": []}, "line 2: 'keywords' has no word"),
        ({"id": "../bob"}, "line 2: 'id' is '../bob': 1 to 64 letters"),
        ({"id": ""}, "line 2: 'id' is '': 1 to 64 letters"),
        ({"keywords": " ".join(map(str, range(100_000)))}, "line 2: 'keywords' has 100,000 words"),
        ({"x": "x" * 1_048_576}, "line 2: it is longer than 1,048,576 bytes"),
    ],
)
def test_a_line_that_is_wrong_stops_all_answers(changes: dict[str, Any], told: str, feed: Feed) -> None:
    feed.told(*feed.batch())
    lines(feed.subscriptions, SUBSCRIPTIONS[0], SUBSCRIPTIONS[1] | changes)
    assert told in feed.refused(*feed.match())
    assert not (feed.folder / "answers").exists()


def test_what_is_typed_wrong_is_told(feed: Feed) -> None:
    assert "there is no batch in" in feed.refused(*feed.match())
    feed.told(*feed.batch("--start", 1000))
    assert "--master is of --engine spark" in feed.refused(*feed.match("--master", "local[2]"))
    assert "7.batch cannot be read: No such file" in feed.refused(*feed.match("--number", 7))
    assert "goes back in time: the one before ends at 1300" in feed.refused(*feed.batch("--start", 1299))
    assert "is not a number of kilometres" in feed.refused(
        *feed.batch("--new-weights", "--max-distance", "nan")
    )
    feed.told(*feed.match())
    assert "--subscription: 'lat' is missing" in feed.refused(*feed.verify("alice", subscription="{}"))
    assert "--subscription: this is no JSON" in feed.refused(*feed.verify("alice", subscription="{"))
    assert "nobody.answer cannot be read: No such file" in feed.refused(*feed.verify("nobody"))
    assert "cannot be read: Is a directory" in feed.refused(*feed.verify("alice", "--after", feed.folder))
    feed.messages.unlink()
    assert "messages.jsonl cannot be read: No such file" in feed.refused(*feed.batch())
    feed.owner = "ab"
    assert "'ab' is no owner's key: it is the 64 digits" in feed.refused(*feed.verify("alice"))


def test_a_feed_has_one_owner_and_one_story(feed: Feed) -> None:
    feed.told(*feed.batch())
    key = feed.folder / "shops.key"
    assert "exists: the key in it would be lost" in feed.refused("key", "new", key)
    key.chmod(0o644)
    assert "others can read the key file" in feed.refused(*feed.batch())
    key.unlink()
    feed.told("key", "new", key)
    assert "are another owner's: name a folder of your own" in feed.refused(*feed.batch())
    key.write_bytes(b"short")
    assert "`hushcast located key new FILE` makes one" in feed.refused(*feed.batch())


@pytest.mark.parametrize("name", ["1.batch", "1.table"])
def test_files_that_were_changed_are_not_answered_from(name: str, feed: Feed) -> None:
    feed.told(*feed.batch())
    file = feed.folder / "batches" / name
    file.write_bytes(file.read_bytes().replace(b"market", b"barket"))
    assert f"{name} is no " in feed.refused(*feed.match())
    file.write_bytes(b"?")
    assert f"{name} is no " in feed.refused(*feed.match())
    file.unlink()
    assert feed.refused(*feed.match())


def test_who_wants_what_without_proofs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    feed = Feed(tmp_path, capfd)
    feed.told(*feed.batch())
    out = tmp_path / "found"
    match = ("match", "--batch", tmp_path / "batches", "--subscriptions", feed.subscriptions, "--out", out)
    told = feed.told(*match, "--no-proofs")
    assert (told["answers"], told["messages"]) == (2, 1)
    assert [path.name for path in out.iterdir()] == ["matches.jsonl"]
    found = [json.loads(line) for line in (out / "matches.jsonl").read_text().splitlines()]
    assert found == [{"id": "alice", "messages": ["near"]}, {"id": "bob", "messages": []}]
    code, text, _ = feed.run(*match, "--no-proofs")
    assert code == 0
    assert text == f"{out}: 2 subscriptions for batch 1, with 1 messages in all\n"


@pytest.mark.slow
def test_figures_on_one_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures"
    code = run(["located", "figures", "--out", str(out), "--subscriptions", "300", "--messages", "20"])
    told = capfd.readouterr()
    assert (code, told.out) == (0, "")
    assert "9 of 9: alpha 0.5, theta 0.9" in told.err
    page = (out / "index.html").read_text()
    assert page.count("<svg") == len(list(out.glob("*.svg"))) == 12
    assert len(json.loads((out / "figures.json").read_text())["points"]) == 9


def test_figures_need_numpy(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("hushcast_located.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    code = run(["located", "figures", "--out", str(tmp_path)])
    (line,) = capfd.readouterr().err.splitlines()
    assert code == 2
    assert "needs numpy" in line
    assert "[located]" in line
