"""What the page makes of the traces of a central system: messages, their ways, what each one saw of them."""

from __future__ import annotations

from typing import Any

import pytest

from hushcast_testnet.watch import central_picture
from hushcast_testnet.watch.central_picture import CentralPicture
from hushcast_testnet.watch.overlay_picture import OverlayPicture
from hushcast_testnet.watch.pictures import picture_of

ID, PROBE = "ab" * 32, "cd" * 32
ONE_TIME, FIRST, SECOND = "1" * 64, "2" * 64, "3" * 64
SEALED, ANEW, AGAIN = "aa" * 16, "bb" * 16, "cc" * 16
TOKENS = [f"{number:02x}" * 32 for number in range(8)]
USERS = ["client-1", "client-2", "client-3"]


def network() -> CentralPicture:
    made = CentralPicture()
    for name, role in (
        ("server", "server"),
        ("publications-1", "publications"),
        ("deliveries-1", "deliveries"),
    ):
        made.take(name, {"kind": "started", "node": name, "role": role})
    for name, pseudonym in (("client-1", FIRST), ("client-2", SECOND)):
        made.take(name, {"kind": "introduced", "pseudonym": pseudonym, "use": "subscribe", "topic": "news"})
        made.take("deliveries-1", {"kind": "introduced", "pseudonym": pseudonym, "use": "subscribe"})
        made.take("server", {"kind": "introduced", "pseudonym": pseudonym, "use": "subscribe"})
        made.take(name, {"kind": "subscribed", "topic": "news", "mailbox": pseudonym, "time": 1.0})
    return made


def travelled(made: CentralPicture, message: str = ID) -> None:
    """Let client-3 publish, and a message come to both subscribers."""
    made.take("client-3", {"kind": "introduced", "pseudonym": ONE_TIME, "use": "publish"})
    made.take("publications-1", {"kind": "introduced", "pseudonym": ONE_TIME, "use": "publish"})
    handed = {"kind": "handed", "pseudonym": ONE_TIME, "tokens": TOKENS, "payload": SEALED, "size": 1300}
    made.take("publications-1", {"time": 10.0} | handed)
    made.take("server", {"time": 10.1, "message": message, "readable": False} | handed)
    for pseudonym, payload, time in ((FIRST, ANEW, 10.2), (SECOND, AGAIN, 10.3)):
        sent = {"kind": "dispatched", "pseudonym": pseudonym, "payload": payload, "size": 1310}
        made.take("server", {"time": time, "message": message} | sent)
        made.take("deliveries-1", {"time": time + 0.05} | sent)
        opened = {"kind": "delivered", "message": message, "tokens": TOKENS[:1], "size": 1167}
        made.take(made._where.owners[pseudonym], {"time": time + 0.06} | opened)


def named(made: CentralPicture) -> None:
    """Let publisher and subscribers say what it is."""
    made.take("client-1", {"kind": "delivered", "message": ID, "topic": "news", "time": 10.4})
    made.take("client-2", {"kind": "delivered", "message": ID, "topic": "news", "time": 10.5})
    made.take(
        "client-3", {"kind": "published", "message": ID, "topic": "news", "origins": ["x"], "time": 10.6}
    )


def test_the_carrier_chooses_the_picture() -> None:
    assert type(picture_of("central")) is CentralPicture
    assert type(picture_of("overlay")) is OverlayPicture


def test_a_message_is_followed_through_proxies_that_cannot_name_it() -> None:
    made = network()
    travelled(made)
    assert made.messages() == []  # it may be a probe
    named(made)
    (row,) = made.messages()
    assert (row["topic"], row["time"], row["inboxes"], row["seconds"]) == (
        "news",
        10.0,
        2,
        pytest.approx(0.5),
    )
    moves = [(move["from"], move["to"]) for move in made.moves()]
    assert moves == [
        ("by client-3", "publications-1"),
        ("publications-1", "server"),
        ("server", "deliveries-1"),
        ("deliveries-1", "client-1"),
        ("server", "deliveries-1"),
        ("deliveries-1", "client-2"),
    ]
    figures = made.figures()
    assert (figures["published"], figures["delivered"], figures["transmissions"]) == (1, 2, 5)
    assert made.load() == {"publications-1": (1, 0), "server": (2, 0), "deliveries-1": (2, 0)}


def test_what_nobody_names_is_a_probe() -> None:
    made = network()
    travelled(made, PROBE)
    assert made.messages() == []
    assert made.moves() == []
    assert made.load()["server"] == (0, 2)
    assert made.figures()["probe_transmissions"] == 5


def test_a_proxys_line_may_come_before_anybody_names_the_message() -> None:
    made = network()
    sent = {"kind": "dispatched", "pseudonym": FIRST, "payload": ANEW, "size": 1310}
    made.take("deliveries-1", {"time": 10.25} | sent)
    made.take("server", {"time": 10.2, "message": ID} | sent)
    named(made)
    way = made.way(ID)
    assert way is not None
    assert [one["name"] for one in way["stations"]] == [
        "client-3",
        "server",
        "deliveries-1",
        "client-1",
        "client-2",
    ]


def station(way: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [one for one in way["stations"] if one["name"] == name]
    return found


def test_each_says_what_it_saw_and_none_a_topic_or_a_user() -> None:
    made = network()
    travelled(made)
    named(made)
    way = made.way("")
    assert way is not None
    assert way["summary"].startswith("client-3 published it on “news”. 3 daemons between them passed it on;")
    assert "client-1 and client-2 got it" in way["summary"]
    server, deliveries = station(way, "server"), station(way, "deliveries-1")
    assert "It came by publications-1, under a pseudonym: no name." in server["saw"]
    assert (
        "It fits 2 pseudonyms: it sealed it anew for each, and sent it on by deliveries-1." in server["saw"]
    )
    assert "It came from the server for 2 pseudonyms." in deliveries["saw"]
    assert any("8 tokens that it cannot read: 00000000…" in text for text in server["saw"])
    between = [one for one in way["stations"] if one["kind"] in ("origin", "relay", "top")]
    assert [one["name"] for one in between] == ["publications-1", "server", "deliveries-1"]
    told = [text for one in between for text in one["saw"]]
    assert not any(word in text for text in told for word in ("news", *USERS, ONE_TIME, FIRST, SECOND))
    assert [[box["id"] for box in level] for level in way["drawing"]["levels"]] == [
        ["publisher"],
        ["publications-1"],
        ["server"],
        ["deliveries-1"],
        ["client-1", "client-2"],
    ]


def test_the_network_is_drawn_with_users_at_both_ends() -> None:
    made = network()
    drawing = made.tree_drawing("", USERS)
    assert drawing is not None
    assert [[box.label for box in level] for level in drawing.levels] == [
        USERS,
        ["publications-1"],
        ["server"],
        ["deliveries-1"],
        USERS,
    ]
    ends = {(arrow.start, arrow.end) for arrow in drawing.arrows}
    assert {
        ("by client-3", "publications-1"),
        ("publications-1", "server"),
        ("server", "deliveries-1"),
    } <= ends
    assert ("deliveries-1", "client-1") in ends
    assert ("deliveries-1", "client-3") not in ends  # it subscribes to nothing
    assert CentralPicture().tree_drawing("", USERS) is None


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(central_picture, "PAYLOADS_KEPT", 3)
    monkeypatch.setattr(central_picture, "PSEUDONYMS_KEPT", 3)
    made = network()
    for number in range(10):
        name = f"{number:064x}"
        made.take("client-1", {"kind": "introduced", "pseudonym": name, "use": "publish"})
        made.take("publications-1", {"kind": "introduced", "pseudonym": name, "use": "publish"})
        line = {
            "kind": "handed",
            "pseudonym": name,
            "tokens": TOKENS,
            "payload": name,
            "size": 1,
            "time": 1.0,
        }
        made.take("publications-1", line)
        made.take("server", line | {"payload": f"f{number:063x}", "message": name})
    assert len(made._early) == len(made._known) == 3
    assert len(made._where.owners) == len(made._where.proxies) == 3


def test_before_a_proxy_has_started_none_is_drawn() -> None:
    made = CentralPicture()
    made.take("server", {"kind": "started", "node": "server", "role": "server"})
    drawing = made.tree_drawing("", USERS)
    assert drawing is not None
    assert all(box.id for level in drawing.levels for box in level)
