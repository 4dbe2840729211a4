"""Strangers as a process of their own, who flood a relay with the dearest that they may start.

Lines on the standard input say `flood NUMBER`, of the relays that the one argument lists, or `rest`. There
are four kinds: hellos without a proof, which a relay answers by all of its own handshake; hellos with junk
for a proof; and as many early frames as fit into a record, behind a proof that holds, of which the first is
what no stranger may say, or a parcel that does not open. One hello, made once, does for the first two kinds.
It says `ready` once it has circuits to all relays.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import trio

from benchmarks.relay.overlay import NETWORK
from benchmarks.tor.private_tor import over_tor
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.links import FULL_RECORD, MAX_HANDSHAKE_FRAME, Link
from hushcast_protocol.base.wire import RelayId, Wire, encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, ParcelFrame, Ping, decode_overlay
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import accept_channel
from hushcast_runtime.transports.tcp import TcpTransport
from hushcast_testnet.tor.tor_network import TorClient

HALF_OPEN = 64  # connections, where each needs no circuit of its own
AT_ONCE = 4  # connections of each other kind
PAUSE = 0.1  # seconds after a connection that failed
ENDS = (TransportError, PeerError, trio.BrokenResourceError)  # of a connection
Kind = Callable[[trio.abc.Stream], Awaitable[None]]
JUNK = struct.pack(">I", MAX_HANDSHAKE_FRAME) + os.urandom(MAX_HANDSHAKE_FRAME)
FORBIDDEN = Ping()
PARCEL = ParcelFrame(0, os.urandom(900), None)


class Flooded:
    """A relay, and what strangers start there, over a circuit for each that does so again and again.

    An onion service of ours ends a circuit with more than two connections: on each there is one that is held.
    """

    def __init__(self, transport: Transport, address: str, relay: RelayId) -> None:
        self._transport = transport
        self._address = parse_address(address)
        self._relay = relay
        self._hello = self._link().data_to_send()
        forbidden, parcel = partial(self._early, FORBIDDEN), partial(self._early, PARCEL)
        self._kinds = [kind for kind in (self._junk, forbidden, parcel) for _ in range(AT_ONCE)]

    async def warm(self, nursery: trio.Nursery) -> None:
        """Hold a connection that is ready on each circuit; return once there is one."""
        for number in range(len(self._kinds)):
            await nursery.start(self._hold, str(number))

    async def flood(self, half_open: int) -> None:
        """Start what there is, again and again, until cancelled; hold so many that are half open, too."""
        async with trio.open_nursery() as nursery:
            for number in range(half_open):
                nursery.start_soon(self._again, self._half_open, f"half open {number}")
            for number, kind in enumerate(self._kinds):
                nursery.start_soon(self._again, kind, str(number))

    async def _hold(self, circuit: str, task_status: trio.TaskStatus[None]) -> None:
        started = False
        while True:
            with suppress(*ENDS):
                stream = await self._connect(circuit)
                channel, _ = await accept_channel(stream, self._link(), decode_overlay)
                if not started:
                    started = True
                    task_status.started()
                await channel.receive()
            await trio.sleep(PAUSE)

    async def _again(self, kind: Kind, circuit: str) -> None:
        while True:
            try:
                async with await self._connect(circuit) as stream:
                    await kind(stream)
                    while await stream.receive_some():
                        pass
            except ENDS:
                await trio.sleep(PAUSE)

    def _link(self) -> Link:
        return Link.initiate(NETWORK.id, self._relay, os.urandom, MAX_OVERLAY_FRAME)

    async def _connect(self, circuit: str) -> trio.abc.Stream:
        return await self._transport.connect(self._address, circuit)

    async def _half_open(self, stream: trio.abc.Stream) -> None:
        await stream.send_all(self._hello)

    async def _junk(self, stream: trio.abc.Stream) -> None:
        await stream.send_all(self._hello + JUNK)

    async def _early(self, frame: Wire, stream: trio.abc.Stream) -> None:
        link = self._link()
        await stream.send_all(link.data_to_send())
        while not link.is_open:
            if not (data := await stream.receive_some()):
                return
            list(link.receive(bytes(data)))
        content = encode(frame)
        for _ in range(FULL_RECORD // (len(content) + 4)):
            link.send(content)
        await stream.send_all(link.data_to_send())


async def obey(settings: dict[str, Any]) -> None:
    """Do what is said until nothing more comes."""
    async with AsyncExitStack() as stack:
        transport: Transport = TcpTransport()
        if settings["tor"] is not None:
            transport = await stack.enter_async_context(over_tor(TorClient(**settings["tor"])))
        relays = [Flooded(transport, address, bytes.fromhex(id_)) for address, id_ in settings["relays"]]
        half_open = 0 if settings["tor"] else HALF_OPEN
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as warming:
                for relay in relays:
                    warming.start_soon(relay.warm, nursery)
            print("ready", flush=True)
            scope, said = trio.CancelScope(), b""
            async for data in trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())):
                *lines, said = (said + data).split(b"\n")
                for line in lines:
                    scope.cancel()
                    if line.startswith(b"flood "):
                        scope = trio.CancelScope()
                        nursery.start_soon(_flood, relays[int(line.split()[1])], half_open, scope)
            nursery.cancel_scope.cancel()


async def _flood(relay: Flooded, half_open: int, scope: trio.CancelScope) -> None:
    with scope:
        await relay.flood(half_open)


if __name__ == "__main__":
    trio.run(obey, json.loads(sys.argv[1]))
