"""Links to proxies: unnamed, each over a circuit of its own, and for one pseudonym alone."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio

from hushcast_central.held_wire import HeldWire
from hushcast_central.user.reachability import Reachability
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.wires import LASTING
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_protocol.central.frames import (
    MAX_CENTRAL_FRAME,
    AttachAnswer,
    Ping,
    Pong,
    ToUser,
    UserAnswer,
    decode_to_user,
)
from hushcast_protocol.central.network import CentralNetwork, Proxy, ProxyRole
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.other_wires import OtherWires
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

ANSWER_TIMEOUT = 30.0  # seconds from a request to its answer, which has two hops of Tor to go


class ProxyConversation:
    """Requests to one proxy and their answers, in order; then perhaps deliveries."""

    def __init__(self, channel: Channel[ToUser], proxy: Proxy, heard: Reachability, wire: HeldWire) -> None:
        self._channel = channel
        self._heard = heard
        self._wire = wire
        self._early: deque[ToUser] = deque()
        self.proxy = proxy

    @property
    def manner(self) -> Manner:
        """How users show themselves in the wire of the network."""
        return self._wire.now.manner

    async def ask(self, *requests: Wire) -> list[UserAnswer | AttachAnswer]:
        """Send requests in one write, and return an answer to each. Raises `TransportError`, `PeerError`."""
        await self._channel.send(*requests)
        answers: list[UserAnswer | AttachAnswer] = []
        for _ in requests:
            answer = await self._next()
            if not isinstance(answer, UserAnswer | AttachAnswer):
                raise DecodeError("a proxy answered what nobody asked")
            answers.append(answer)
            is_closed = isinstance(answer, UserAnswer) and answer.verdict == "closed"
            self._heard.note(self.proxy.role, not is_closed)
        return answers

    async def ping(self) -> Pong:
        """Ask for a sign of life, of the server, too. Raises as `ask`."""
        await self._channel.send(Ping())
        answer = await self._next()
        if not isinstance(answer, Pong):
            raise DecodeError("a proxy answered what nobody asked")
        self.note(answer)
        return answer

    async def say(self, frame: Wire) -> None:
        """Send a frame whose answer comes with what is heard, if there is one."""
        await self._channel.send(frame)

    async def hear(self) -> list[ToUser]:
        """Return what comes next; nothing when the other end has closed."""
        if self._early:
            found = list(self._early)
            self._early.clear()
            return found
        return await self._channel.receive()

    def note(self, pong: Pong) -> None:
        """Note what a sign of life says of the server; raise `PeerError` where it says it falsely."""
        self._wire.take(pong.announced)
        self._heard.note(self.proxy.role, pong.is_open)

    async def _next(self) -> ToUser:
        with trio.move_on_after(ANSWER_TIMEOUT):
            while not self._early:
                batch = await self._channel.receive()
                if not batch:
                    raise TransportError("the proxy closed the link before it answered")
                self._early.extend(batch)
        if not self._early:
            raise TransportError("the proxy did not answer in time")
        return self._early.popleft()


class UserLinks:
    """Opens the links of one daemon."""

    def __init__(
        self,
        network: CentralNetwork,
        proxies: Sequence[Proxy],
        transport: Transport,
        heard: Reachability,
        wire: HeldWire,
        env: Environment,
        counters: Counters,
    ) -> None:
        self._network = network.id
        self._wire = wire
        self.other_wires = OtherWires(env.elapsed, counters)
        self._proxies = {proxy.key: proxy for proxy in proxies}
        self._transport = transport
        self._heard = heard
        self._env = env
        self._counters = counters

    @property
    def manner(self) -> Manner:
        """How users show themselves in the wire of the network."""
        return self._wire.now.manner

    @property
    def days_kept(self) -> int:
        """For how many days the server keeps what is published, as it announced; 0: not at all."""
        return self._wire.days_kept

    def of(self, role: ProxyRole) -> list[Proxy]:
        """Return the proxies of a role."""
        return [proxy for proxy in self._proxies.values() if proxy.role == role]

    def find(self, key: PublicKey) -> Proxy | None:
        """Return the proxy with this key, if the network has it still."""
        return self._proxies.get(key)

    def proxy(self, key: PublicKey) -> Proxy:
        """Return the proxy with this key; raise `TransportError` where the network has it no more."""
        if (found := self._proxies.get(key)) is None:
            raise TransportError("the proxy is not in the network any more")
        return found

    @asynccontextmanager
    async def open(self, proxy: Proxy) -> AsyncIterator[ProxyConversation]:
        """Open a link in the network's wire, closed at the end. Raises `TransportError`, `PeerError`.

        The first of a day asks what that is before: in a former one it would stand out among others.
        """
        if not self._wire.is_fresh:
            await self.ask(proxy)
        wire = self._wire.now.spoken()
        async with self._opened(proxy, wire) as talk:
            yield talk

    async def ask(self, proxy: Proxy) -> Pong:
        """Ask a proxy for a sign of life, in a link of its own that every release opens. Raises as `open`."""
        async with self._opened(proxy, LASTING) as talk:
            return await talk.ping()

    @asynccontextmanager
    async def _opened(self, proxy: Proxy, wire: int) -> AsyncIterator[ProxyConversation]:
        try:
            async with self._linked(proxy, wire) as talk:
                yield talk
        except (PeerError, TransportError):
            self._heard.note_failure(proxy.role)
            raise

    @asynccontextmanager
    async def _linked(self, proxy: Proxy, wire: int) -> AsyncIterator[ProxyConversation]:
        link = Link.initiate(self._network, proxy.key, self._env.randomness, MAX_CENTRAL_FRAME, wire=wire)
        try:
            channel, _ = await open_channel(
                self._transport, proxy.address, self._env.isolation(), link, decode_to_user
            )
        except (PeerError, TransportError) as error:
            self._counters.add("links_failed")
            self.other_wires.note(error)
            raise
        self._counters.add("links_opened")
        try:
            yield ProxyConversation(channel, proxy, self._heard, self._wire)
        finally:
            await channel.aclose()
