"""mosquitto's packet sequences: files of bytes as words, played against a server.

A file is a list of groups of tests. A test connects (`connect`, as `ver`, both optional), then sends bytes,
expects bytes or has another client publish, in turn; in the end the server must have closed the connection
(`expect_disconnect`) or answer a ping. What a group says holds for those of its tests that do not say it.
Since mosquitto 2.1 a word of bytes is hex digits, a text in quotes, or a number with its form: `i` is one
byte, `H`, `k`, `m` and `s` are two, `L` is four, `v` and `r` are of variable length.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from outcomes import Outcome

from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    ConnAck,
    Connect,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
)

PATIENCE = 2.0  # seconds for each answer, as in the script that the sequences were written for
NOT_SPOKEN = "v3.1 "  # groups of MQTT 3.1, which came before the standard; some say so by `ver` 3
_WORD = re.compile(r"'([^']*)'|([iHkmsLvr])(\d+)|((?:[0-9A-Fa-f]{2})+)")
_WIDTHS = {"i": 1, "H": 2, "k": 2, "m": 2, "s": 2, "L": 4}
CONNECTED: dict[int, bytes] = {
    # What the sequences take for granted of a server, byte by byte.
    V311: encode(ConnAck(), V311),
    V5: encode(
        ConnAck(
            properties={"topic_alias_maximum": 10, "maximum_packet_size": 2_000_000, "receive_maximum": 20}
        ),
        V5,
    ),
}
Dial = Callable[[], socket.socket]


class FaultError(Exception):
    """The server did something else."""


def run(folder: Path, server: tuple[str, int], only: str = "") -> Iterator[Outcome]:
    """Play all sequences, file by file."""
    files = sorted(folder.glob("*.json"))
    if not files:
        yield Outcome("files", f"there are none in {folder}")

    def dial() -> socket.socket:
        return socket.create_connection(server, PATIENCE)

    for file in files:
        for group in json.loads(file.read_text()):
            if group.get("disable"):
                continue
            for one in group["tests"]:
                test, name = group | one, f"{group['group']} {one['name']}"
                if only in name:
                    yield outcome(name, test, dial)


def outcome(name: str, test: dict[str, Any], dial: Dial) -> Outcome:
    """Play one test."""
    if name.startswith(NOT_SPOKEN) or test.get("ver", V311) not in CONNECTED:
        return Outcome(name, left_out=True)
    try:
        with dial() as connection:
            play(name, test, connection, dial)
    except (FaultError, OSError) as error:
        return Outcome(name, str(error) or type(error).__name__)
    return Outcome(name)


def play(name: str, test: dict[str, Any], connection: socket.socket, dial: Dial) -> None:
    """Play one test on a connection; raise `FaultError` or `OSError` where it fails."""
    version = test.get("ver", V311)
    if test.get("connect", True):
        _send(connection, encode(Connect(version, name, keep_alive=60), version))
        _expect(connection, CONNECTED[version], "CONNACK")
    for move in test["msgs"]:
        if move["type"] == "external_publish":
            with dial() as helper:
                _publish(helper, move)
        elif move["type"] == "send":
            _send(connection, _bytes(move["payload"]))
        elif move["type"] == "recv":
            _expect(connection, _bytes(move["payload"]), move.get("comment", "an answer"))
        else:
            raise FaultError(f"no such move: {move['type']}")
    if not test.get("expect_disconnect", True):
        _send(connection, encode(PingReq(), V311))
        _expect(connection, encode(PingResp(), V311), "an answer to a ping")
    elif rest := _end(connection):
        raise FaultError(f"it should be over, and there is {rest.hex()}")


def _publish(helper: socket.socket, move: dict[str, Any]) -> None:
    """Publish as another client, and carry the handshake out."""
    qos = move["qos"]
    steps = [
        (encode(Connect(V311, "helper", keep_alive=60), V311), CONNECTED[V311]),
        (encode(Publish(move["topic"], move["payload"].encode(), qos, packet_id=qos and 1), V311), b""),
    ]
    if qos == 1:
        steps.append((b"", encode(PubAck(1), V311)))
    elif qos == 2:
        steps += [(b"", encode(PubRec(1), V311)), (encode(PubRel(1), V311), encode(PubComp(1), V311))]
    for sent, answer in steps:
        _send(helper, sent)
        _expect(helper, answer, "an answer to the helper")


def _bytes(words: str) -> bytes:
    if _WORD.sub("", words).strip():
        raise FaultError(f"not bytes: {words}")
    return b"".join(_word(*found) for found in _WORD.findall(words))


def _word(text: str, form: str, number: str, digits: str) -> bytes:
    if not form:
        return bytes.fromhex(digits) or text.encode()
    return int(number).to_bytes(_WIDTHS[form], "big") if form in _WIDTHS else _varying(int(number))


def _varying(number: int) -> bytes:
    """Return a number of variable length; a sequence may have one that the standard forbids."""
    more, low = divmod(number, 128)
    return bytes([low | 128]) + _varying(more) if more else bytes([low])


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)


def _expect(connection: socket.socket, wanted: bytes, what: str) -> None:
    found = b""
    while len(found) < len(wanted):
        try:
            data = connection.recv(len(wanted) - len(found))
        except TimeoutError:
            raise FaultError(f"{what}: {found.hex() or 'nothing'} and not {wanted.hex()}") from None
        if not data:
            raise FaultError(f"{what}: closed after {found.hex() or 'nothing'} and not {wanted.hex()}")
        found += data
    if found != wanted:
        raise FaultError(f"{what}: {found.hex()} and not {wanted.hex()}")


def _end(connection: socket.socket) -> bytes:
    """Return what still comes; nothing, if the connection is over."""
    try:
        return connection.recv(64)
    except ConnectionResetError:
        return b""
    except TimeoutError:
        raise FaultError("it should be over, and is open") from None
