"""A directory of a release to come, whose network goes on to a wire that nobody here speaks."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import trio
from small_network import SmallNetwork

from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.head_questions import Heads, decode_heads_question
from hushcast_protocol.authorities.heads import (
    AssentBody,
    AuthorityChange,
    CertifiedHead,
    Head,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions.wires import LASTING, WireRange, spoken
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

LATER = WireRange(2, 3)


class LaterRelease:
    """Takes the place of a network's directory, with its key."""

    def __init__(self, net: SmallNetwork) -> None:
        machine = net.directory.agreeing.machine
        assert machine is not None
        self._net = net
        self._held = machine.chain.state
        self.heads: list[CertifiedHead] = []
        """What it shows."""
        self.asked = 0

    def authorities(self, wire: int) -> Authorities:
        return msgspec.structs.replace(self._held.authorities, wire=wire)

    def agree(self, wire: int, change: AuthorityChange | None = None) -> None:
        """Have a head of the running epoch or the next one, which may be of a wire not spoken here."""
        assert self._held.newest is not None
        net, seed = self._net.net, self._net.directory.seed
        last = (self.heads or [self._held.newest])[-1].head
        epoch, before = max(net.calendar.epoch(self._net.now), decode_head(last).epoch + 1), head_digest(last)
        inside = decode_head(self._held.newest.head).inside if wire in spoken() else b"\xc1 in words to come"
        body = encode(Head(net.id, epoch, before, self.authorities(wire), change, inside))
        mark = IndexedSignature(0, assent_to(seed, AssentBody(net.id, epoch, head_digest(body))))
        self.heads = [CertifiedHead(body, (mark,))]

    async def take_over(self) -> None:
        """Stop the directory, and answer in its place."""
        net = self._net
        await net.directory.stop()
        listener = await net.wires.transport().listen(net.directory.seed)
        net.nursery.start_soon(listener.serve, self._answer)

    async def _answer(self, stream: trio.abc.Stream) -> None:
        net = self._net
        link = Link.respond(
            net.net.id,
            net.directory.seed,
            net.env.randomness,
            MAX_OVERLAY_FRAME,
            speaks=LATER,
            takes=(LASTING,),
        )
        channel = Channel(stream, link, decode_overlay)
        with suppress(PeerError, TransportError):
            await channel.handshake()
            assert link.wire == LASTING
            await channel.speaking(decode_heads_question).first()
            self.asked += 1
            await channel.send(Heads(tuple(self.heads)))
            await channel.finish()
        await channel.aclose()
