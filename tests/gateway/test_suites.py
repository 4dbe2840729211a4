"""The runner of the public suites: it tells a server that does as it should from one that does not."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import interoperability
import pytest
import sequences

from hushcast_protocol.mqtt.reason_codes import PacketError
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import Connect, Disconnect, PingReq, PingResp, Publish


def dial() -> socket.socket:
    """Connect to a server that knows CONNECT, PINGREQ and what is wrong, and echoes PUBLISH."""
    ours, theirs = socket.socketpair()
    ours.settimeout(0.3)
    threading.Thread(target=_serve, args=(theirs,), daemon=True).start()
    return ours


def _serve(connection: socket.socket) -> None:
    decoder = Decoder(1000)
    with connection, contextlib.suppress(OSError):  # whoever is done has closed its end
        while data := connection.recv(100):
            try:
                packets = decoder.feed(data)
            except PacketError as error:
                connection.sendall(encode(Disconnect(error.reason), 5) if decoder.version == 5 else b"")
                return
            for packet in packets:
                if isinstance(packet, Connect):
                    connection.sendall(sequences.CONNECTED[packet.version])
                elif isinstance(packet, PingReq):
                    connection.sendall(encode(PingResp(), 4))
                elif isinstance(packet, Publish):
                    connection.sendall(encode(packet, decoder.version))


def move(kind: str, payload: str) -> dict[str, Any]:
    return {"type": kind, "payload": payload}


ECHO = [move("send", "30 r3 s1 'a'"), move("recv", "30 03 0001 61")]


@pytest.mark.parametrize(
    "test",
    [
        {"msgs": [], "expect_disconnect": False},
        {"msgs": ECHO, "expect_disconnect": False},
        {"msgs": [move("send", "c1 00")]},
        {"ver": 5, "msgs": [move("send", "c1 00"), move("recv", "e0 01 81")]},
        {"connect": False, "msgs": [move("send", "c0 i0")]},
        {
            "msgs": [move("send", "30 r4 H1 'a' i98"), move("recv", "30 v4 00016162")],
            "expect_disconnect": False,
        },
        {"msgs": [move("send", "30 r268435456 L1")]},  # a length of five bytes
        {
            "msgs": [{"type": "external_publish", "topic": "a", "payload": "b", "qos": 0}],
            "expect_disconnect": False,
        },
    ],
)
def test_a_server_that_answers_well_passes(test: dict[str, Any]) -> None:
    assert sequences.outcome("x", test, dial).failure is None


@pytest.mark.parametrize(
    ("test", "failure"),
    [
        ({"msgs": []}, "should be over, and is open"),
        ({"msgs": ECHO[:1]}, "there is 3003000161"),
        (
            {"msgs": [move("send", "c1 00")], "expect_disconnect": False},
            "",
        ),  # closed, before or after the ping
        (
            {"msgs": [*ECHO[:1], move("recv", "30 03 0001 62")], "expect_disconnect": False},
            "and not 3003000162",
        ),
        ({"msgs": [move("recv", "d0 00")], "expect_disconnect": False}, "nothing and not d000"),
        ({"msgs": [move("dance", "")]}, "no such move"),
        ({"msgs": [move("send", "3 r3")]}, "not bytes: 3 r3"),
    ],
)
def test_a_server_that_does_something_else_fails(test: dict[str, Any], failure: str) -> None:
    assert failure in str(sequences.outcome("x", test, dial).failure)


def test_what_a_group_says_holds_for_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [{"name": "one", "msgs": []}, {"name": "two", "msgs": [], "ver": 4}]
    (tmp_path / "a.json").write_text(json.dumps([{"group": "all", "ver": 3, "tests": tests}]))
    monkeypatch.setattr(sequences.socket, "create_connection", lambda *_: dial())
    assert [one.left_out for one in sequences.run(tmp_path, ("there", 1))] == [True, False]


def test_the_version_before_the_standard_is_left_out() -> None:
    assert sequences.outcome("v3.1   CONNECT ok", {"msgs": []}, dial).left_out
    assert sequences.outcome("ok", {"ver": 3, "msgs": []}, dial).left_out


CHECKOUT = """
import time, unittest

class Test(unittest.TestCase):
    made = 0

    @classmethod
    def setUpClass(cls):
        Test.made += 1

    def test_1_good(self):
        assert (host, port, topics[0]) == ("there", 1, "TopicA")

    def test_2_says_no(self):
        print("it went wrong")
        return False

    def test_3_bad(self):
        self.assertEqual(1, 2)

    def test_4_hangs(self):
        while True:
            try:
                time.sleep(1)
            except Exception:
                pass

    def test_5_now_and_then(self):
        assert Test.made % 2
"""


def test_classes_of_a_checkout_are_called_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "interoperability"
    folder.mkdir()
    (folder / "a_checkout.py").write_text(CHECKOUT)
    monkeypatch.setattr(interoperability, "MODULES", {"5": "a_checkout"})
    monkeypatch.setattr(sys, "path", list(sys.path))
    outcomes = list(interoperability.run(tmp_path, "5", ("there", 1), "", 0.3))
    sys.modules.pop("a_checkout")
    good, says, bad, hangs, flaky = outcomes
    assert good.failure is None
    assert "it went wrong" in str(says.failure)
    assert "1 != 2" in str(bad.failure)
    assert "not over" in str(hangs.failure)
    assert flaky.failure is None
    assert "attempt" in flaky.note


MOVED = """
import types, unittest

class Client:
    sent = []
    def connect(self, host, willTopic=None): self.sent.append(willTopic)
    def publish(self, topic, payload): self.sent.append(topic)
    def subscribe(self, topics, options): self.sent.extend(topics)
    def unsubscribe(self, topics): self.sent.extend(topics)

class Callbacks:
    def publishArrived(self, topic, payload): return topic

mqtt_client = types.SimpleNamespace(Client=Client)

class Test(unittest.TestCase):
    def test_all(self):
        client = Client()
        client.connect(host, willTopic="w")
        client.connect(host)
        client.publish("p", b"")
        client.publish("", b"")
        client.subscribe(["#", "$share/g/s"], [0, 0])
        client.unsubscribe(["u"])
        moved = ["x/w", None, "x/p", "", "x/#", "$share/g/x/s", "x/u"]
        self.assertEqual(client.sent, moved)
        self.assertEqual(Callbacks().publishArrived("x/p", b""), "p")
"""


def test_all_topics_are_moved_under_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "interoperability"
    folder.mkdir()
    (folder / "a_moved_checkout.py").write_text(MOVED)
    monkeypatch.setattr(interoperability, "MODULES", {"5": "a_moved_checkout"})
    monkeypatch.setattr(sys, "path", list(sys.path))
    (outcome,) = interoperability.run(tmp_path, "5", ("there", 1), "", 5, "x/")
    sys.modules.pop("a_moved_checkout")
    assert outcome.failure is None


def test_a_folder_that_is_no_checkout_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(interoperability, "MODULES", {"5": "not_there"})
    assert [one.failure for one in sequences.run(tmp_path, ("there", 1))] == [f"there are none in {tmp_path}"]
    (outcome,) = interoperability.run(tmp_path, "5", ("there", 1), "", 1)
    assert "no checkout" in str(outcome.failure)
