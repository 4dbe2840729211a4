"""The verdict: what counts as lost, as shown again, as healed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hushcast_testnet.chaos.journal import Journal, JournalEntry
from hushcast_testnet.chaos.verdict import Verdict, judge, traces

TOPIC = "t"


def truth(kind: str, daemon: str, message: str, **fields: object) -> dict:
    return {"kind": kind, "daemon": daemon, "topic": TOPIC, "message": message, **fields}


def shown(time: float, message: str, cursor: int, daemon: str = "s") -> JournalEntry:
    return JournalEntry(time, "shown", daemon, message=message, cursor=cursor)


def acknowledged(time: float, cursor: int) -> JournalEntry:
    return JournalEntry(time, "acknowledged", "s", cursor=cursor)


def published(time: float, message: str) -> JournalEntry:
    return JournalEntry(time, "published", "p", message=message)


def judged(*events: JournalEntry, truths: tuple[dict, ...] = (), names: tuple[str, ...] = ("s",)) -> Verdict:
    return judge(events, truths, TOPIC, names)


def test_what_every_subscriber_was_shown_is_delivered() -> None:
    verdict = judged(published(1, "m"), shown(2, "m", 1), shown(2, "m", 1, "s2"), names=("s", "s2"))
    assert (verdict.receipts, verdict.pairs, verdict.delivered, verdict.lost) == (1, 2, 2, 0)


def test_a_loss_tells_whether_the_daemon_had_it() -> None:
    verdict = judged(
        published(1, "m"),
        names=("s", "s2"),
        truths=(truth("published", "p", "m", origins=["o"]), truth("delivered", "s2", "m")),
    )
    assert (verdict.pairs, verdict.lost) == (2, 2)
    assert [(loss.subscriber, loss.origins, loss.in_inbox) for loss in verdict.losses] == [
        ("s", ("o",), False),
        ("s2", ("o",), True),
    ]


def test_a_message_without_a_receipt_is_not_lost() -> None:
    verdict = judged(
        JournalEntry(1, "refused", "p"),
        truths=(truth("published", "p", "m", origins=[]), truth("published", "p", "n")),
    )
    assert (verdict.receipts, verdict.lost) == (0, 0)


def test_a_receipt_counts_though_the_application_never_heard_of_it() -> None:
    verdict = judged(JournalEntry(1, "refused", "p"), truths=(truth("published", "p", "m", origins=["o"]),))
    assert (verdict.receipts, verdict.lost) == (1, 1)


def test_other_topics_do_not_count() -> None:
    other = truth("published", "p", "m", origins=["o"]) | {"topic": "other"}
    assert judged(truths=(other,)).receipts == 0


def test_shown_again_after_a_confirmed_acknowledgement_is_a_duplicate() -> None:
    verdict = judged(shown(1, "m", 1), acknowledged(1, 1), JournalEntry(2, "left", "s"), shown(5, "m", 1))
    assert (verdict.duplicated, verdict.repeated) == (1, 0)


@pytest.mark.parametrize(
    "between", [(), (acknowledged(1, 0),)], ids=["not acknowledged", "only what came before"]
)
def test_shown_again_without_one_is_a_repetition(between: tuple[JournalEntry, ...]) -> None:
    verdict = judged(shown(1, "m", 1), *between, shown(10, "m", 1))
    assert (verdict.duplicated, verdict.repeated) == (0, 1)


def test_what_is_queued_waits_until_it_has_a_receipt() -> None:
    queued = JournalEntry(1, "queued", "p", message="m")
    assert (judged(queued).waiting, judged(queued).receipts) == (1, 0)
    verdict = judged(queued, published(2, "m"))
    assert (verdict.waiting, verdict.receipts, verdict.lost) == (0, 1, 1)
    late = truth("published", "p", "m", origins=["o"])
    assert judged(queued, truths=(late,)).waiting == 0


def test_a_message_at_two_places_of_an_inbox_is_a_duplicate() -> None:
    assert judged(shown(1, "m", 1), shown(2, "m", 2)).duplicated == 1


def test_two_subscribers_do_not_duplicate_each_other() -> None:
    verdict = judged(shown(1, "m", 1), shown(2, "m", 1, "s2"))
    assert (verdict.duplicated, verdict.repeated) == (0, 0)


def test_healing_is_from_the_end_of_a_fault_to_the_last_message_of_its_time() -> None:
    verdict = judged(
        JournalEntry(10, "begin", "r", fault="kill"),
        published(11, "m"),
        JournalEntry(20, "end", "r", fault="kill"),
        published(21, "late"),
        shown(22.5, "m", 1),
        shown(40, "late", 2),
        JournalEntry(50, "begin", "r", fault="cut"),
        published(51, "n"),
        shown(52, "n", 3),
        JournalEntry(60, "end", "r", fault="cut"),
    )
    assert verdict.heal == {"median": 1.25, "worst": 2.5}
    assert judged().heal == {"median": None, "worst": None}


def test_traces_survive_a_line_that_a_kill_cut_short(tmp_path: Path) -> None:
    (tmp_path / "relay-1.truth.jsonl").write_text('{"kind": "started"}\n{"kind": "publ\n{"kind": "x"}\n')
    (tmp_path / "relay-1.observations.jsonl").write_text('{"kind": "drop"}\n')
    assert list(traces(tmp_path)) == [
        {"kind": "started", "daemon": "relay-1"},
        {"kind": "x", "daemon": "relay-1"},
    ]


def test_the_journal_keeps_what_it_writes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "chaos" / "j.jsonl", lambda: 1.23456)
    journal.note("begin", "relay-1", fault="delay", lasts=2.0, amount=0.5)
    journal.note("shown", "client-1", message="ab", cursor=3)
    journal.close()
    lines = (tmp_path / "chaos" / "j.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {
        "time": 1.235, "kind": "begin", "daemon": "relay-1", "fault": "delay", "lasts": 2.0, "amount": 0.5,
    }  # fmt: skip
    assert journal.events[1] == JournalEntry(1.235, "shown", "client-1", message="ab", cursor=3)
