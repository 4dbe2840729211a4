"""What the page of a testnet makes of its traces: messages, not probes; their ways; what relays learned."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from hushcast_testnet.inventory import Member
from hushcast_testnet.watch import daemon_states, message_traces, overlay_picture, topic_listeners
from hushcast_testnet.watch.daemon_states import SLOW_AFTER, DaemonStates, overall, state_of
from hushcast_testnet.watch.diagram import Arrow, levels_by_time, tree_drawing
from hushcast_testnet.watch.history import SLICE, SLICES_KEPT, History
from hushcast_testnet.watch.overlay_picture import OverlayPicture
from hushcast_testnet.watch.topic_listeners import WAITED_FOR

KEYS = {f"relay-{number}": str(number) * 64 for number in range(1, 7)}
MAILBOX, OTHER = "e" * 64, "f" * 64
ID = "ab" * 32
TOKENS = [f"{number:02x}" * 16 for number in range(8)]


def network() -> OverlayPicture:
    made = OverlayPicture()
    for name, key in KEYS.items():
        made.take(name, {"kind": "started", "node": key, "role": "relay"})
    for name, mailbox in (("client-1", MAILBOX), ("relay-6", OTHER)):
        made.take(name, {"kind": "subscribed", "topic": "news", "mailbox": mailbox, "time": 1.0})
    return made


class Traces:
    """Writes what daemons note, 10 ms after each other."""

    def __init__(self, made: OverlayPicture, message: str = ID, at: float = 100.0) -> None:
        self._picture = made
        self._message = message
        self._time = at

    def _take(self, name: str, **record: Any) -> None:
        self._picture.take(name, {"message": self._message, "time": self._time} | record)
        self._time += 0.01

    def drop(self, name: str) -> None:
        self._take(name, kind="drop", tokens=TOKENS, size=1167)
        self._take(name, kind="received", tokens=TOKENS, size=1167, outcome="forwarded", popcount=0)

    def send(self, name: str, end: str) -> None:
        self._take(name, kind="sent", tokens=TOKENS[:1], next=KEYS.get(end, end))

    def receive(self, name: str, start: str, outcome: str = "forwarded", popcount: int = 14) -> None:
        where = {"previous": KEYS[start], "outcome": outcome, "popcount": popcount}
        self._take(name, kind="received", tokens=TOKENS[:1], size=1167, **where)

    def open(self, name: str) -> None:
        self._take(name, kind="delivered", tokens=TOKENS[:1], size=1167)

    def put(self, name: str) -> None:
        self._take(name, kind="delivered", topic="news")

    def publish(self, name: str) -> None:
        self._take(name, kind="published", topic="news", origins=[KEYS["relay-1"]], took=0.1)


def travelled(made: OverlayPicture, at: float = 100.0, message: str = ID) -> Traces:
    """Let a message enter at relay-1 and relay-2, meet at relay-3, and come to both mailboxes."""
    traces = Traces(made, message, at)
    traces.drop("relay-1")
    traces.drop("relay-2")
    traces.send("relay-1", "relay-3")
    traces.send("relay-2", "relay-3")
    traces.receive("relay-3", "relay-1")
    traces.send("relay-3", MAILBOX)
    traces.send("relay-3", "relay-4")
    traces.receive("relay-3", "relay-2", "duplicate")
    traces.receive("relay-4", "relay-3", popcount=28)
    traces.send("relay-4", OTHER)
    traces.open("client-1")
    traces.put("client-1")
    traces.publish("client-9")
    return traces


def station(made: OverlayPicture, name: str, kind: str | None = None) -> dict[str, Any]:
    way = made.way(ID)
    assert way is not None
    (found,) = [one for one in way["stations"] if one["name"] == name and kind in (None, one["kind"])]
    return dict(found)


def saw(made: OverlayPicture, name: str, kind: str | None = None) -> str:
    return " ".join(station(made, name, kind)["saw"])


def hidden(made: OverlayPicture, name: str, kind: str | None = None) -> str:
    return " ".join(station(made, name, kind)["hidden"])


def test_what_nobody_calls_a_message_is_a_probe() -> None:
    made = network()
    probe = Traces(made, "cd" * 32)
    probe.drop("relay-1")
    probe.send("relay-1", "relay-3")
    probe.receive("relay-3", "relay-1")
    probe.send("relay-3", MAILBOX)
    probe.open("client-1")  # it opens a probe as it opens a message: only its inbox tells
    assert made.messages() == []
    assert made.moves() == []
    assert made.figures() == {
        "published": 0,
        "delivered": 0,
        "transmissions": 0,
        "probe_transmissions": 2,
        "delay_p50": None,
    }
    assert made.load() == {"relay-1": (0, 1), "relay-3": (0, 1)}
    told = made.history(105.0)
    assert (sum(told["messages"]), sum(told["hops"]), sum(told["probe_hops"])) == (0, 0, 2)


def test_a_message_counts_from_its_first_drop_once_its_publisher_has_told() -> None:
    made = network()
    travelled(made)
    (listed,) = made.messages()
    took = listed.pop("seconds")
    del listed["fate"]  # it is in an inbox
    assert listed == {"id": ID, "time": 100.0, "topic": "news", "relays": 4, "inboxes": 1}
    assert took == pytest.approx(0.13)
    assert made.figures()["transmissions"] == 5
    assert made.figures()["probe_transmissions"] == 0
    assert len(made.moves()) == 2 + 5
    told = made.history(105.0)
    assert (told["messages"][-1], told["hops"][-1], told["probe_hops"][-1]) == (1, 5, 0)


def test_a_publication_told_again_after_a_restart_counts_once() -> None:
    made = network()
    traces = travelled(made)
    traces.publish("client-9")
    assert made.figures()["published"] == 1
    assert sum(made.history(105.0)["messages"]) == 1


def test_the_newest_message_comes_first_and_is_shown_unless_one_is_chosen() -> None:
    made = network()
    travelled(made, at=100.0)
    travelled(made, at=90.0, message="cd" * 32)
    assert [one["id"] for one in made.messages()] == [ID, "cd" * 32]
    newest, other = made.way(""), made.way("cd" * 32)
    assert newest is not None
    assert other is not None
    assert (newest["id"], other["id"]) == (ID, "cd" * 32)
    assert made.way("00" * 32) is None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_traces, "MESSAGES_KEPT", 3)
    monkeypatch.setattr(message_traces, "UNNAMED_KEPT", 3)
    monkeypatch.setattr(message_traces, "STEPS_KEPT", 4)
    monkeypatch.setattr(overlay_picture, "MAILBOXES_KEPT", 3)
    monkeypatch.setattr(topic_listeners, "LISTENERS_KEPT", 3)
    made = network()
    for number in range(10):
        told = {"topic": "t", "mailbox": f"{number:064x}", "time": 1.0}
        made.take("client-1", {"kind": "subscribed", **told})
        made.take("client-1", {"kind": "unsubscribed", **told})
        Traces(made, f"{number:064x}", number).drop("relay-1")
    assert len(made._messages._unnamed) == 3
    assert len(made._owners) == len(made._listeners._all) == 3
    for number in range(10):
        travelled(made, at=number, message=f"{number:064x}")
    assert [one["id"] for one in made.messages()] == [f"{number:064x}" for number in (9, 8, 7)]
    assert all(len(one.steps) == 4 for one in made._messages._named.values())


def test_each_kind_of_relay_is_said_to_have_seen_what_it_noted() -> None:
    made = network()
    travelled(made)
    assert station(made, "relay-1")["role"].startswith("origin:")
    assert "from outside" in saw(made, "relay-1")
    assert "sent it on to relay-3." in saw(made, "relay-1")
    assert "8 tokens that it cannot read: 00000000…" in saw(made, "relay-1")
    assert "padded to 1 KiB" in saw(made, "relay-1")
    assert station(made, "relay-3")["role"].startswith("last relay")
    assert "came from relay-1, and again from relay-2." in saw(made, "relay-3")
    assert "sent it on to relay-4, and to a box, whose key is in no list." in saw(made, "relay-3")
    assert "One token, 00000000…" in saw(made, "relay-3")
    assert "14 bits set: 1 relay before it" in saw(made, "relay-3")
    assert "28 bits set: 2 relays before it" in saw(made, "relay-4")


def test_each_kind_of_relay_is_said_not_to_have_seen_what_the_threat_model_says() -> None:
    made = network()
    travelled(made)
    for relay in ("relay-1", "relay-2", "relay-3", "relay-4"):
        assert "The topic's name, and the content." in hidden(made, relay)
        assert "Who published it" in hidden(made, relay)
    assert "at which other relays it was dropped" in hidden(made, "relay-1")
    assert "Who subscribes" in hidden(made, "relay-1")
    assert "Whose box it is" in hidden(made, "relay-3")
    assert "Who published it" in hidden(made, "client-1")
    assert "to relay-3" in hidden(made, "client-1")


def test_no_relay_is_said_to_know_topic_publisher_or_owner() -> None:
    made = network()
    travelled(made)
    way = made.way(ID)
    assert way is not None
    for one in way["stations"]:
        if one["kind"] in ("origin", "relay", "top"):
            told = " ".join([one["role"], *one["saw"], *one["hidden"]])
            assert not any(secret in told for secret in ("news", "client-1", "client-9", MAILBOX, "relay-6"))


def test_a_relay_that_also_publishes_or_subscribes_is_noted() -> None:
    made = network()
    traces = travelled(made)
    traces.drop("relay-6")
    traces.open("relay-6")
    traces.put("relay-6")
    assert "Its own daemon subscribes" in station(made, "relay-6", "origin")["note"]
    assert station(made, "relay-6", "mailbox")["id"] == OTHER
    again = network()
    own = Traces(again)
    own.drop("relay-1")
    own.publish("relay-1")
    assert "its own daemon published" in station(again, "relay-1", "origin")["note"]
    assert station(again, "relay-1", "publisher")["saw"][1].endswith("relay-1.")


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("duplicate", "had the message already"),
        ("loop", "was here before"),
        ("unrouted", "no lease here fits"),
        ("forwarded", "nothing on so far"),
    ],
)
def test_who_sends_nothing_on_says_why(outcome: str, said: str) -> None:
    made = network()
    travelled(made).receive("relay-5", "relay-3", outcome)
    assert said in saw(made, "relay-5")


def test_a_message_on_its_way_is_told_as_far_as_it_was_noted() -> None:
    made = network()
    traces = Traces(made)
    traces.drop("relay-1")
    traces.send("relay-1", "relay-3")  # which notes nothing: it is stopped
    traces.send("relay-1", MAILBOX)
    traces.publish("client-9")
    way = made.way(ID)
    assert way is not None
    assert way["seconds"] is None
    assert way["summary"].endswith("1 relay saw it; on its way.")
    boxes = {box["id"]: box for level in way["drawing"]["levels"] for box in level}
    assert boxes["relay-3"]["note"] == "no sign yet"
    assert boxes[MAILBOX]["note"] == "on its way"
    kinds = {(arrow["start"], arrow["end"]): arrow["kind"] for arrow in way["drawing"]["arrows"]}
    assert kinds[("relay-1", "relay-3")] == kinds[("relay-1", MAILBOX)] == "unseen"
    assert way["others"] == ["relay-2", "relay-4", "relay-5", "relay-6"]
    assert saw(made, "client-1") == "It is on its way from relay-1."


def test_what_a_condition_does_not_fit_comes_and_is_not_kept() -> None:
    made = network()
    traces = Traces(made)
    traces.drop("relay-1")
    traces.send("relay-1", MAILBOX)
    traces.open("client-1")
    traces.publish("client-9")
    assert "condition does not fit" in saw(made, "client-1")


def fate(made: OverlayPicture) -> tuple[int, str]:
    (listed,) = made.messages()
    return listed["relays"], listed["fate"]


def test_what_nobody_subscribed_to_is_said_to_be_so() -> None:
    made = OverlayPicture()
    for name, key in KEYS.items():
        made.take(name, {"kind": "started", "node": key, "role": "relay"})
    made.take("client-1", {"kind": "subscribed", "topic": "sport", "mailbox": OTHER, "time": 0.0})
    made.take("client-1", {"kind": "subscribed", "topic": "news", "mailbox": MAILBOX, "time": 50.0})
    made.take("client-1", {"kind": "unsubscribed", "mailbox": MAILBOX, "time": 99.0})
    traces = Traces(made)
    traces.drop("relay-1")
    traces.drop("relay-2")
    traces.publish("client-9")
    assert fate(made) == (2, "nobody subscribed")
    assert "2 relays saw it; nobody subscribed." in made.way(ID)["summary"]  # type: ignore[index]
    assert made.subscription_of("") == ""
    again = {"kind": "subscribed", "topic": "news", "mailbox": "d" * 64, "time": 100.0 + WAITED_FOR}
    made.take("client-1", again)
    assert fate(made) == (2, "it came to nobody")
    again["time"] = 100.0 + WAITED_FOR + 1.0
    made.take("client-1", again)
    assert fate(made) == (2, "nobody subscribed")  # who subscribes later gets nothing of it


def test_what_waits_for_a_way_is_on_its_way_for_five_minutes() -> None:
    made = network()
    traces = Traces(made)
    traces.drop("relay-1")
    traces.publish("client-9")
    assert fate(made) == (1, "on its way")
    made.take("relay-2", {"kind": "else", "time": 100.0 + WAITED_FOR})
    assert fate(made) == (1, "it came to nobody")


def test_probes_are_listed_apart_and_only_if_asked_for() -> None:
    made = network()
    travelled(made)
    one = Traces(made, "cd" * 32, 101.0)
    one.drop("relay-5")
    assert made.subscription_of("cd" * 32) == ""
    one.send("relay-5", OTHER)
    assert made.subscription_of("cd" * 32) == OTHER
    assert [one["id"] for one in made.messages()] == [ID]
    probe, message = made.messages(probes=True)
    assert (probe["topic"], probe["fate"], probe["relays"]) == (None, "a probe", 1)
    assert message["id"] == ID
    assert made.way("cd" * 32)["summary"] == "A probe: nobody calls it a message. 1 relay saw it."  # type: ignore[index]
    assert made.way("")["id"] == ID  # type: ignore[index]


def test_the_tree_of_the_chosen_message_shows_its_way() -> None:
    made = network()
    assert made.subscription_of("") == MAILBOX
    tree = {KEYS[name]: None if above is None else KEYS[above] for name, above in TREE.items()}
    made.take("client-1", {"kind": "installed", "mailbox": MAILBOX, "day": 1, "tree": tree})
    before = made.tree_drawing(MAILBOX, ["client-1", "client-9"])
    assert before is not None
    assert {arrow.kind for arrow in before.arrows} == {"sent"}
    travelled(made)
    assert made.subscription_of(ID) == MAILBOX
    drawn = made.tree_drawing(MAILBOX, ["client-1", "client-9", "client-8"], ID)
    assert drawn is not None
    kinds = {(arrow.start, arrow.end): arrow.kind for arrow in drawn.arrows}
    assert {ends for ends, kind in kinds.items() if kind == "taken"} == {
        ("relay-1", "relay-3"),
        ("relay-2", "relay-3"),
        ("relay-3", "mailbox"),
    }
    assert kinds[("relay-5", "relay-3")] == "sent"
    assert kinds[("publisher", "relay-1")] == kinds[("publisher", "relay-2")] == "dropped"
    boxes = {box.id: (box.kind, box.note) for level in drawn.levels for box in level}
    assert boxes["relay-1"] == ("origin", "+0 ms")
    assert boxes["relay-5"] == ("idle", "")
    assert boxes["mailbox"][0] == "mailbox"
    assert boxes["mailbox"][1].startswith("+")
    assert [box.id for box in drawn.levels[0]] == ["publisher"]
    assert [box.id for box in drawn.levels[-1]] == ["client-8"]


TREE = {"relay-3": None, "relay-1": "relay-3", "relay-2": "relay-3", "relay-5": "relay-3"}


def test_the_way_is_drawn_from_the_publisher_down_to_the_mailboxes() -> None:
    made = network()
    travelled(made)
    way = made.way(ID)
    assert way is not None
    levels = [[box["label"] for box in level] for level in way["drawing"]["levels"]]
    assert levels == [["client-9"], ["relay-1", "relay-2"], ["relay-3"], ["relay-4"], ["client-1", "relay-6"]]
    kinds = {(arrow["start"], arrow["end"]): arrow["kind"] for arrow in way["drawing"]["arrows"]}
    assert kinds[("publisher", "relay-2")] == "dropped"
    assert kinds[("relay-1", "relay-3")] == "sent"
    assert kinds[("relay-2", "relay-3")] == "again"
    assert kinds[("relay-3", MAILBOX)] == "sent"
    assert kinds[("relay-4", OTHER)] == "unseen"
    assert way["others"] == ["relay-5", "relay-6"]
    assert way["summary"].startswith(
        "client-9 published it on “news”. 4 relays saw it; client-1 got it, within"
    )


def test_a_message_that_goes_in_a_circle_is_drawn() -> None:
    first = {"a": 1.0, "b": 2.0, "c": 3.0}
    arrows = [
        Arrow("a", "b", "sent"),
        Arrow("b", "c", "sent"),
        Arrow("c", "a", "sent"),
        Arrow("c", "x", "sent"),
    ]
    assert levels_by_time(first, arrows) == {"a": 0, "b": 1, "c": 2}


def test_a_tree_is_drawn_as_messages_go_and_the_others_at_its_foot() -> None:
    tree = {"r1": None, "r2": "r1", "r3": "r1", "owner": "r2"}
    drawing = tree_drawing(tree, "owner", ["r1", "r2", "r3", "owner", "client"])
    levels = [[(box.id, box.kind) for box in level] for level in drawing.levels]
    assert levels == [
        [("owner", "relay")],
        [("r2", "relay"), ("r3", "relay")],
        [("r1", "top")],
        [("mailbox", "mailbox")],
        [("client", "aside")],
    ]
    assert Arrow("r1", "mailbox", "sent") in drawing.arrows
    assert Arrow("owner", "r2", "sent") in drawing.arrows


def test_history_keeps_the_last_minutes_and_no_more() -> None:
    history = History()
    for number in range(3 * SLICES_KEPT):
        history.add("sent", number * SLICE + 1.0)
        history.add("messages", number * SLICE + 1.0)
    history.add("sent", 5.0)  # long gone
    assert len(history._slices) <= SLICES_KEPT
    now = 3 * SLICES_KEPT * SLICE - 1.0
    told = history.until(now)
    assert told["messages"] == told["probe_hops"] == [1] * SLICES_KEPT
    later = history.until(now + SLICES_KEPT * SLICE)
    assert later["messages"] == [0] * SLICES_KEPT


@pytest.mark.parametrize(
    ("pid", "said", "silent", "state"),
    [
        (None, {"ready": True}, 0.0, ("gone", "not running")),
        (1, {"ready": True}, 0.0, ("ready", "ready")),
        (1, {"ready": True}, SLOW_AFTER - 0.1, ("ready", "ready")),
        (1, {"ready": True}, SLOW_AFTER + 9.5, ("slow", "no answer for 12 seconds")),
        (1, None, 60.0, ("slow", "no answer for 60 seconds")),
        (1, {"ready": False}, 0.0, ("starting", "starting")),
        (1, {}, 0.0, ("starting", "starting")),
        (1, None, 0.0, ("starting", "starting")),
    ],
)
def test_a_slow_daemon_is_slow_and_not_gone(
    pid: int | None, said: dict[str, Any] | None, silent: float, state: tuple[str, str]
) -> None:
    assert state_of(pid, said, silent) == state


def test_the_testnet_is_as_its_worst_daemon() -> None:
    assert overall(["ready", "ready"], []) == ("ready", "ready")
    assert overall(["ready", "slow", "slow"], []) == ("slow", "2 daemons slow to answer")
    assert overall(["starting", "slow"], []) == ("starting", "1 daemon starting")
    assert overall(["gone", "starting", "slow"], []) == ("gone", "1 daemon not running")
    assert overall(["ready"], ["directory"]) == ("gone", "the directory is not running")
    assert overall([], []) == ("starting", "no daemons yet")


async def test_a_daemon_that_does_not_answer_keeps_what_it_said(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    answers = iter([0.0, 20.0])

    async def describe(member: Member) -> dict[str, Any]:
        await trio.sleep(next(answers, 0.0))
        return {"ready": True, "links": 3, "roster": {"epoch": 1, "relays": 12, "shard": 1}}

    monkeypatch.setattr(daemon_states, "describe", describe)
    asked = DaemonStates()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(asked.ask, Member("relay-1", "relay", "", "", ""))
        await trio.sleep(0.5)
        assert asked.state("relay-1", 1) == ("ready", "ready, shard 1")
        await trio.sleep(10)
        assert asked.state("relay-1", 1) == ("slow", "no answer for 9 seconds")
        assert asked.said["relay-1"]["links"] == 3
        await trio.sleep(11)
        assert asked.state("relay-1", 1) == ("ready", "ready, shard 1")
        nursery.cancel_scope.cancel()
