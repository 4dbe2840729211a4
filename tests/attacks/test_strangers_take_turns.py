"""Strangers say at one moment what takes a relay a while each: whoever else waits, waits for one of them.

Each step is short, but all that are ready were taken in one pass of the loop: what a relay's own daemon had
to say came behind all of them, so that whoever timed it saw that strangers were there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from small_network import small_network

from hushcast_overlay.relay import incoming_connections
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Ping

STRANGERS = 40


class Passes(trio.abc.Instrument):
    """Counts passes of the loop, and what was done in each."""

    def __init__(self) -> None:
        self.number = 0
        self.done: Counter[int] = Counter()
        self.all: Counter[str] = Counter()

    def before_io_wait(self, timeout: float) -> None:
        self.number += 1

    def noting(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, noted."""

        def noted(*args: Any) -> Any:
            self.done[self.number] += 1
            self.all[what] += 1
            return function(*args)

        return noted


async def test_one_stranger_has_its_turn_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes()
    async with small_network(relays=2, clients=0, epoch=36000) as net:
        relay = net.relays[0]
        role = relay.daemon.overlay.relay
        assert role is not None
        monkeypatch.setattr(Link, "_on_hello", passes.noting("hello", Link._on_hello))
        monkeypatch.setattr(Link, "_on_initiator", passes.noting("proof", Link._on_initiator))
        decode = incoming_connections.decode_from_stranger
        monkeypatch.setattr(incoming_connections, "decode_from_stranger", passes.noting("frame", decode))
        everybody, arrived = trio.Event(), Counter[str]()

        async def serve(stream: trio.abc.Stream) -> None:
            with pytest.raises(DecodeError):
                await role.incoming.serve(await role.incoming.accept(stream))

        async def stranger(stream: trio.abc.Stream, link: Link) -> None:
            while not link.is_open:
                list(link.receive(bytes(await stream.receive_some())))
            arrived["here"] += 1
            if arrived["here"] == STRANGERS:
                everybody.set()
            await everybody.wait()
            link.send(encode(Ping()))
            await stream.send_all(link.data_to_send())

        pairs = [trio.testing.memory_stream_pair() for _ in range(STRANGERS)]
        links = [Link.initiate(net.net.id, relay.id, os.urandom, MAX_OVERLAY_FRAME) for _ in range(STRANGERS)]
        for (_, theirs), link in zip(pairs, links, strict=True):
            await theirs.send_all(link.data_to_send())
        trio.lowlevel.add_instrument(passes)
        async with trio.open_nursery() as nursery:
            for (ours, theirs), link in zip(pairs, links, strict=True):
                nursery.start_soon(serve, ours)
                nursery.start_soon(stranger, theirs, link)
        trio.lowlevel.remove_instrument(passes)
    assert passes.all == dict.fromkeys(("hello", "proof", "frame"), STRANGERS)
    assert max(passes.done.values()) == 1
