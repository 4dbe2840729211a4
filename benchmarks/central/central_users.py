"""The harness's users of a central system: all that they say is made before time is taken."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import trio

from benchmarks.processes import Progress
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import encode
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import (
    MAX_CENTRAL_FRAME,
    AttachAnswer,
    Delivery,
    Introduce,
    Publish,
    ToUser,
    UserAnswer,
    decode_to_user,
)
from hushcast_protocol.central.introduction import PseudonymSecret, PseudonymUse, introduction, pseudonym_of
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_protocol.central.rerouting import encrypted, wrap
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.tokens import TOKEN_COUNTS
from hushcast_runtime.transports.channel import Channel, open_channel
from hushcast_runtime.transports.tcp import TcpTransport

PAYLOAD = 1024  # bytes
_BODY = HEADER + PAYLOAD + SEAL  # bytes of the smallest sealed body, which holds that payload
A_CONNECTION = 48  # publications: a proxy slows who asks more than 64 things at once


@dataclass(frozen=True)
class Pseudonym:
    """What a user of the harness knows of one."""

    use: PseudonymUse
    key: Scalar
    secret: PseudonymSecret

    @property
    def name(self) -> bytes:
        """What server and proxy know it by."""
        return pseudonym_of(self.secret)

    def introduce(self, network: CentralNetwork) -> Introduce:
        """Introduce it for today."""
        blinding, day = Scalar.draw(os.urandom), network.calendar.day(time.time())
        sealed = introduction(network.sealing_key, self.use, day, self.key, blinding, self.secret)
        return Introduce(blinding.reveal(), sealed, None)

    def tokens(self, tokens: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Encrypt tokens."""
        return tuple(encrypted(self.key, token) for token in tokens)

    def publish(self, network: CentralNetwork, trunk: bytes) -> Publish:
        """Make a publication of 1 KiB with as many tokens as the smallest has."""
        day, body = network.calendar.day(time.time()), os.urandom(_BODY)
        inside = Message(message_id(day, body), day, (trunk,), bytes(TRAIL_SIZE), body)
        tokens = (trunk, *(os.urandom(16) for _ in range(TOKEN_COUNTS[0] - 1)))
        wrapped = wrap(self.key, encode(inside), os.urandom)
        return request_proofs.publish(self.name, self.secret, self.tokens(tokens), wrapped)


def pseudonym(use: PseudonymUse) -> Pseudonym:
    """Draw one."""
    return Pseudonym(use, Scalar.draw(os.urandom), PseudonymSecret.draw(os.urandom))


async def connected(network: CentralNetwork, proxy: Proxy) -> Channel[ToUser]:
    """Connect to a proxy, without a name."""
    link = Link.initiate(network.id, proxy.key, os.urandom, MAX_CENTRAL_FRAME)
    channel, _ = await open_channel(TcpTransport(), Address(proxy.address), "", link, decode_to_user)
    return channel


async def introduced(network: CentralNetwork, proxy: Proxy, user: Pseudonym) -> Channel[ToUser]:
    """Connect, and make a pseudonym known."""
    channel = await connected(network, proxy)
    await channel.send(user.introduce(network))
    (answer,) = await channel.receive()
    if answer != UserAnswer("accepted", None):
        raise RuntimeError(f"a pseudonym was not taken: {answer}")
    return channel


async def subscribe(
    network: CentralNetwork,
    proxy: Proxy,
    trunk: bytes,
    number: int,
    progress: Progress,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """Subscribe, attach, and count and acknowledge what comes until cancelled; it is not opened."""
    user = pseudonym("subscribe")
    channel = await introduced(network, proxy, user)
    await channel.send(
        request_proofs.subscribe(user.name, user.secret, 1, user.tokens((trunk,))),
        request_proofs.attach(user.name, user.secret),
    )
    chain, taken = b"", 0
    while batch := await channel.receive():
        before = taken
        for frame in batch:
            if isinstance(frame, AttachAnswer):
                chain = frame.salt
                task_status.started()
            elif isinstance(frame, Delivery):
                chain = request_proofs.followed(chain, frame.wrapped)
                taken += 1
            elif not isinstance(frame, UserAnswer) or frame.proof is None:
                raise RuntimeError(f"a subscription was not taken: {frame}")
        if taken > before:
            await channel.send(request_proofs.acknowledge(user.secret, chain, taken))
            progress.note(number, taken - before)


class Publishers:
    """Users with open connections, each with prepared publications."""

    def __init__(self, network: CentralNetwork, proxy: Proxy, trunk: bytes) -> None:
        self._network = network
        self._proxy = proxy
        self._trunk = trunk

    async def publish(self, count: int) -> float:
        """Publish so many messages, each once the one before it has its receipt; return when it began."""
        ready: list[tuple[Channel[ToUser], Pseudonym, list[Publish]]] = []
        for first in range(0, count, A_CONNECTION):
            user = pseudonym("publish")
            channel = await introduced(self._network, self._proxy, user)
            some = range(first, min(first + A_CONNECTION, count))
            ready.append((channel, user, [user.publish(self._network, self._trunk) for _ in some]))
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for one in ready:
                nursery.start_soon(self._say, *one)
        return began

    async def _say(self, channel: Channel[ToUser], user: Pseudonym, requests: list[Publish]) -> None:
        await channel.send(*requests)
        waiting = iter(requests)
        left = len(requests)
        while left:
            for answer in await channel.receive():
                request = next(waiting)
                assert isinstance(answer, UserAnswer)
                if answer.verdict != "accepted" or not request_proofs.is_from_server(
                    user.secret, request, answer
                ):
                    raise RuntimeError(f"a publication was not taken: {answer}")
                left -= 1
        await channel.aclose()
