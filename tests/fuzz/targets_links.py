"""Targets: a link as both sides and at every stage, between honest ends and against an insider; a channel."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from core_examples import NETWORK, relay_id, seed, small_message, stream
from fuzzing import MAX_SCRIPT, Script, Stranger, Target, scripts
from mutating import mutate_packed
from targets_daemons import in_trio
from targets_decoders import some_frames

from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.links import (
    HELLO_SIZE,
    MAX_HANDSHAKE_FRAME,
    Anonymous,
    HandshakeDone,
    IdentityProof,
    Link,
)
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.base.versions.wires import spoken
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Ack, Forward, Ping, decode_overlay
from hushcast_runtime.transports.channel import accept_channel

LIMIT = 2048  # bytes of a frame, small enough to be passed
_VIEW = RosterView(7, b"v" * 32)
_FRAMES = some_frames(Random("frames"))
_PROOFS = [
    *(encode(IdentityProof(relay_id(number), b"s" * 64, _VIEW, spoken())) for number in (0, 3)),
    *(encode(Anonymous(view)) for view in (None, _VIEW)),
]


class _End:
    """One end, and what came to it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.got: list[bytes] = []
        self.established: list[HandshakeDone] = []
        self.failed = False

    def receive(self, data: bytes) -> None:
        try:
            for event in self.link.receive(data):
                if isinstance(event, HandshakeDone):
                    assert not self.got
                    self.established.append(event)
                else:
                    assert self.established
                    self.got.append(event)
        except PeerError:
            self.failed = True
        else:
            assert not self.failed, "a link that failed took bytes"
        assert len(self.established) <= 1
        most = max(LIMIT + 4 if self.link.is_open else MAX_HANDSHAKE_FRAME, HELLO_SIZE) + 4 + 16
        assert len(self.link._buffer) <= most, "a link holds more than a record"


def _ends(named: bool, honest_view: RosterView | None = None) -> tuple[_End, _End]:
    identity = seed(1001) if named else None
    return (
        _End(Link.initiate(NETWORK.id, relay_id(0), stream(1), LIMIT, identity, honest_view)),
        _End(Link.respond(NETWORK.id, seed(1000), stream(2), LIMIT, _VIEW)),
    )


def _between(data: bytes) -> None:
    """Someone between two honest ends cuts, joins, drops, repeats, changes and swaps their bytes."""
    script = Script(data)
    named = bool(script.number() & 1)
    initiator, responder = ends = _ends(named=named)
    said: tuple[list[bytes], list[bytes]] = ([], [])
    wires: tuple[bytearray, bytearray] = (bytearray(), bytearray())
    recorded = [b"\x00" * 40]
    honest = script.number() % 4  # the first rounds go through untouched, so that each stage is reached
    for step in range(60):
        for side in (0, 1):
            ours = ends[side]
            if ours.link.is_open and not ours.failed and script.number() & 1:
                said[side].append(frame := script.choose(_FRAMES)[:LIMIT])
                ours.link.send(frame)
            sent = ours.link.data_to_send()
            recorded.append(sent)
            wires[side].extend(sent)
            passed = bytes(wires[side])
            wires[side].clear()
            if step >= honest and script:
                passed = _tampered(script, passed, recorded)
            for piece in script.pieces(passed) if script.number() & 1 else [passed]:
                ends[1 - side].receive(piece)
        if script.is_over:
            break
    for side, ours in enumerate(ends):
        theirs = said[1 - side]
        assert ours.got == theirs[: len(ours.got)], "frames came that were not sent, or in another order"
        if ours.established:
            expected = relay_id(0) if side == 0 else (relay_id(1) if named else None)
            assert ours.established[0].peer == expected
    assert responder.link is not initiator.link


def _tampered(script: Script, passed: bytes, recorded: list[bytes]) -> bytes:
    move = script.number() % 12
    at = script.number(2) % (len(passed) + 1)
    if move == 0:
        return (
            passed[:at] + bytes([passed[at] ^ (1 << script.number() % 8)]) + passed[at + 1 :]
            if passed[at:]
            else b""
        )
    if move == 1:
        return passed[:at]
    if move == 2:
        return passed[:at] + script.take(script.number() % 40) + passed[at:]
    if move == 3:
        return passed + passed
    if move == 4:
        return passed + script.choose(recorded[-200:])
    if move == 5:
        return script.choose(recorded[-200:])
    if move == 6:
        return passed[at:] + passed[:at]
    return passed


class _Liar(Link):
    """An end that has all keys, proves itself with what it likes and may put anything into a record."""

    lie: bytes | None = None

    def _seal(self, content: bytes) -> None:
        lie, self.lie = self.lie, None
        super()._seal(content if lie is None else lie)


def _insider(data: bytes) -> None:
    """An end that speaks the handshake, lies in its proof, and sends sealed nonsense afterwards."""
    script = Script(data)
    kind = script.number()
    if kind & 1:
        liar: _Liar = _Liar.initiate(NETWORK.id, relay_id(0), stream(1), LIMIT, seed(1001))  # type: ignore[assignment]
        victim = _End(Link.respond(NETWORK.id, seed(1000), stream(2), LIMIT, _VIEW))
    else:
        liar = _Liar.respond(NETWORK.id, seed(1000), stream(2), LIMIT)  # type: ignore[assignment]
        victim = _End(Link.initiate(NETWORK.id, relay_id(0), stream(1), LIMIT, None, _VIEW))
    truthful = not kind & 6
    if not truthful:
        lies = script.choose(_PROOFS), mutate_packed(Random(script.number(4)), _PROOFS), script.take(300)
        liar.lie = lies[kind // 8 % 3]
    for _ in range(3):
        victim.receive(liar.data_to_send())
        if list_of := victim.link.data_to_send():
            list(liar.receive(list_of))
    victim.receive(liar.data_to_send())
    if not truthful:
        peers = [one.peer for one in victim.established]
        assert peers in ([], [None]) if kind & 1 else not peers, "a false proof was taken"
        return
    assert victim.established
    while script and not victim.failed:
        if not script.number() % 16:
            is_sealed, junk = script.number() & 1, script.take(script.number() % 64)
            if is_sealed:
                liar._seal(junk)
            else:
                liar._to_send += (junk,)
        else:
            liar.send(script.choose(_FRAMES)[: script.number(2)])
        for piece in script.pieces(liar.data_to_send()):
            victim.receive(piece)
    for frame in victim.got:
        try:
            decode_overlay(frame)
        except PeerError:
            continue


def _cuts(data: bytes) -> None:
    """All at once equals cut anywhere: the same events, the same end."""
    script = Script(data)
    initiator, whole = _ends(named=True)
    _, cut = _ends(named=True)
    hello = initiator.link.data_to_send()
    if script.number() % 4 == 0:
        hello = _tampered(script, hello, [hello])
    for end, pieces in ((whole, [hello]), (cut, script.pieces(hello))):
        for piece in pieces:
            if not end.failed:
                end.receive(piece)
    assert whole.failed == cut.failed
    answer = whole.link.data_to_send()
    assert cut.link.data_to_send() == answer
    initiator.receive(answer)
    if not initiator.link.is_open:
        return
    for _ in range(script.number() % 6):
        initiator.link.send(script.choose(_FRAMES)[:LIMIT])
    flow = initiator.link.data_to_send()
    if script.number() & 1:
        flow = _tampered(script, flow, [answer, flow])
    whole.receive(flow)
    for piece in script.pieces(flow):
        if not cut.failed:
            cut.receive(piece)
    assert (whole.established, whole.got, whole.failed) == (cut.established, cut.got, cut.failed)


def _raw(data: bytes) -> None:
    """Bytes from whoever dials or answers."""
    draw = stream(9)  # not the keys of the recorded flows, or they would be taken
    initiator = _End(Link.initiate(NETWORK.id, relay_id(0), draw, LIMIT))
    for end in (initiator, _End(Link.respond(NETWORK.id, seed(1000), draw, LIMIT))):
        end.link.data_to_send()
        for piece in (data[:7], data[7:90], data[90:]):
            if not end.failed:
                end.receive(piece)
        assert not end.established


def _flows() -> list[bytes]:
    initiator, responder = _ends(named=True)
    responder.receive(hello := initiator.link.data_to_send())
    initiator.receive(answer := responder.link.data_to_send())
    initiator.link.send(b"frame" * 9)
    return [hello, answer, hello + initiator.link.data_to_send()]


# A channel on it


_SOUND = [encode(one) for one in (Ping(), Ack(2, (1,)), Forward(small_message()))]


async def _channels(data: bytes) -> None:
    """A relay's channels hand out frames until the first bad one, then its error, again and again."""
    script = Script(data)
    while script:
        await _channel(script)


async def _channel(script: Script) -> None:
    is_cut, frames, is_sound = script.number() % 4 == 0, [], True
    while is_sound:
        is_sound = script.number() % 4 > 0
        frames.append(script.choose(_SOUND) if is_sound else script.take(script.number() ** 2 // 128))
        is_sound = is_sound and (not script.is_over if is_cut else bool(script))  # what is cut is one move
    frames += [script.choose(_SOUND) for _ in range(script.number() % 3)]  # unread, they are no moves
    link = Link.initiate(NETWORK.id, relay_id(0), stream(5), MAX_OVERLAY_FRAME)
    hostile: Any = Stranger(link, frames, script.number(2) if is_cut else None)
    honest = Link.respond(NETWORK.id, seed(1000), stream(6), MAX_OVERLAY_FRAME)
    channel, _ = await accept_channel(hostile, honest, decode_overlay)
    try:
        while await channel.receive():
            pass
    except PeerError:
        if channel._failure is not None:
            with pytest.raises(type(channel._failure)):
                await channel.receive()
    await channel.aclose()


TARGETS = [
    Target("link-between", _between, scripts, weight=4),
    Target("link-insider", _insider, scripts, weight=4),
    Target("link-cuts", _cuts, scripts, weight=4),
    Target("link-raw", _raw, _flows, weight=5),
    Target("channel", in_trio(_channels), lambda: scripts(size=MAX_SCRIPT), weight=1),
]
