"""A relay says on all its links at one moment what takes long to read, and so do others that are in it.

What waits for nothing is read by one task for all links, sixteen of them in a step. In one read of a link
there were sixteen acknowledgements that name as many messages as may be: of sixteen links 75 ms.
"""

from __future__ import annotations

import os

import pytest
import trio
from small_network import SmallNetwork, small_network

from hushcast_protocol.base.link import links
from hushcast_protocol.base.link.hop import MAX_LINKS_A_PEER
from hushcast_protocol.base.link.hop_link import MAX_UNACKNOWLEDGED, MAX_UNROUTED
from hushcast_protocol.base.wire import Wire, encode
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay.confirmations import MAX_CONFIRMATIONS
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Ack, OverlayFrame, ParcelAnswer, Ping
from hushcast_runtime.storage.changes import Change, Commit
from hushcast_runtime.storage.spool import HopMessage
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.at_once import write_at_once
from hushcast_runtime.transports.channel import Channel

LEAST = 1167  # bytes of the smallest body
TOKENS = (bytes(16),)


class CommittingStore(MemoryStore):
    """In memory, with what changes cost before a disk has them."""

    def __init__(self) -> None:
        super().__init__()
        self._commit = Commit()

    def write_soon(self, *changes: Change) -> None:
        self._commit.add(changes)
        super().write_soon(*changes)

    async def write(self, *changes: Change) -> None:
        await super().write(*changes)
        self._commit = Commit()


LONG_FRAMES: dict[str, Wire] = {
    "places of a byte": Ack(1, tuple([place % 128 for place in range(MAX_UNROUTED)])),
    "places": Ack(1, tuple(range(1, 1 + MAX_UNROUTED))),
    "answers": ParcelAnswer(1, None, (bytes(16),) * MAX_CONFIRMATIONS),
}


async def links_to_one(net: SmallNetwork) -> list[Channel[OverlayFrame]]:
    """Links to a relay from all others, over ways that are equally long."""
    net.wires.delay = lambda: 0.1
    relay, *others = net.relays
    opened = []
    for other in others:
        assert other.identity is not None
        opened += [await net.knock(relay, other.identity.seed) for _ in range(MAX_LINKS_A_PEER)]
    await trio.sleep(1)
    return opened


@pytest.mark.parametrize("piece", [None, 16_000])
@pytest.mark.parametrize("what", LONG_FRAMES)
async def test_what_is_long_to_read_keeps_nobody_waiting(
    what: str, piece: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it comes at once, or piece by piece under one seal, so that the last of them is short."""
    monkeypatch.setattr(links, "FULL_RECORD", 64 * 1024 if piece is None else MAX_OVERLAY_FRAME)
    frame = LONG_FRAMES[what]
    async with small_network(relays=6, clients=0, epoch=36_000) as net:
        opened = await links_to_one(net)
        frames = [frame] * (255_000 // len(encode(frame)))
        sealed = [link._sealed(map(encode, frames)) for link in opened]
        for place in range(0, len(sealed[0]), piece or len(sealed[0])):
            for link, data in zip(opened, sealed, strict=True):
                write_at_once(link._stream, data[place:][:piece])
            await trio.sleep(5)
        for link in opened:
            await link.send(Ping())
            assert await link.one(5) == Ack(0, ())
            await link.aclose()


async def test_full_windows_acknowledged_on_many_links_keep_nobody_waiting() -> None:
    """They were 70 ms of a step: their messages are on disk already."""
    async with small_network(relays=6, clients=0, epoch=36_000) as net:
        store = net.relays[0].store = CommittingStore()
        await net.relays[0].restart()
        relay = net.relays[0].daemon.overlay.relay
        assert relay is not None
        opened = await links_to_one(net)
        spool, day = relay.peers._spool, net.calendar.day(net.now)
        for peer in relay.peers._peers.values():
            for link in peer.links:
                sends: list[HopMessage] = []
                for number in range(MAX_UNACKNOWLEDGED // LEAST):
                    one = Message(os.urandom(16), day, TOKENS, bytes(TRAIL_SIZE), number.to_bytes(LEAST))
                    sends.append(HopMessage(peer.hop, one))
                items = [item for _, item in spool.put(sends)]
                link.send(items, sum([item.size for item in items]), trio.current_time())
        assert len(spool) == len(opened) * (MAX_UNACKNOWLEDGED // LEAST)
        await store.write()
        for link in opened:
            link.send_at_once(Ack(MAX_UNACKNOWLEDGED // LEAST, ()))
        await trio.sleep(5)
        assert len(spool) == 0
        for link in opened:
            await link.aclose()
