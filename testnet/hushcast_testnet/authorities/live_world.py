"""Faulty authorities among real ones: the adversary of the simulation, over the transport of directories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

import trio

from hushcast_directory.server.authority_links import AuthorityLinks
from hushcast_protocol.authorities.actions import AuthorityState
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.descriptor_exchange import ExchangeFrame, PeerFrame, decode_peer_frame
from hushcast_protocol.authorities.directory_requests import decode_directory_request
from hushcast_protocol.authorities.frames import AuthorityFrame, decode_frame
from hushcast_protocol.authorities.heads import CertifiedHead
from hushcast_protocol.authorities.listing import ListedRelay
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Listener, Transport, TransportError
from hushcast_runtime.transports.channel import Channel
from hushcast_testnet.authorities.adversary import AuthorityFault, FaultyAuthorities
from hushcast_testnet.authorities.faulty_answers import FaultyAnswers
from hushcast_testnet.authorities.world import AuthoritiesWorld, SimulatedAuthority

MAX_STRANGERS_FRAME = 4096  # bytes
ASKED_WITHIN = 10.0  # seconds in which a daemon asks
SILENCE = 90.0  # seconds for which a daemon that gets no answer waits at most

Look = Callable[[PublicKey], Authority | None]
"""Returns the machine of an honest authority, where the adversary can see it."""
Reached = Callable[[int], tuple[ListedRelay, ...]]
"""Returns what faulty authorities list for an epoch."""
Kinds = Callable[[int], Iterable[AuthorityFault]]
"""Returns what each of the faulty ones does in an epoch."""


class LiveWorld(AuthoritiesWorld):
    """The adversary's authorities; the others are real, wherever they run."""

    def __init__(
        self,
        network: Network,
        authorities: Authorities,
        seeds: Sequence[Seed],
        env: Environment,
        random: Random,
        look: Look = lambda key: None,
    ) -> None:
        """`seeds` are those of the faulty ones."""
        super().__init__(authorities, list(seeds), {seed.public() for seed in seeds}, random)
        self.network = network
        self._env = env
        self._look = look
        self._peers: dict[PublicKey, AuthorityLinks] = {}
        self._nursery: trio.Nursery | None = None
        self._moved = trio.Event()
        for key in authorities.keys:
            if key not in self.members:
                self.members[key] = _Honest(self, key)
        self._faulty = self.adversary = FaultyAuthorities(self)

    async def serve(
        self,
        transport: Transport,
        listeners: Sequence[Listener],
        kinds: Kinds,
        reached: Reached,
        desk: FaultyAnswers | None = None,
    ) -> None:
        """Move all faulty ones until cancelled; `listeners` as `faulty`. A `desk` answers daemons."""
        calendar, addresses = self.network.calendar, {m.key: m for m in self.authorities.members}
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self.now = self._env.now()
            for member, listener in zip(self.faulty, listeners, strict=True):
                hear = partial(self._hear, member)
                peers = AuthorityLinks(transport, self.network.id, member.seed, self._env, calendar, hear)
                peers.follow(addresses)
                self._peers[member.key] = peers
                nursery.start_soon(peers.run)
                nursery.start_soon(listener.serve, partial(self._answer, member, peers, desk))
                member.start()
            nursery.start_soon(self._tick)
            while True:
                epoch = calendar.epoch(self._env.now() + calendar.grace) + 1
                await self._env.sleep_until(self.times(epoch).gathered - 1)
                self._look_around()
                for member in self.faulty:
                    member.listed = reached(epoch)
                self._faulty.begin(epoch, kinds(epoch))
                await self._env.sleep_until(self.times(epoch).gathered)

    def at(self, moment: float, call: Callable[[], None]) -> None:
        """Have something happen at a moment."""
        assert self._nursery is not None
        self._nursery.start_soon(self._later, moment, call)

    def send(
        self, sender: PublicKey, to: Iterable[PublicKey], data: bytes, delay: float | None = None
    ) -> None:
        """Send after `delay` seconds: over a link, or to another faulty one."""
        wait = self.leg * self.random.random() if delay is None else delay
        frame = decode_frame(data)
        for key in to:
            self.at(self.now + wait, partial(self._pass, sender, key, data, frame))
        if self.random.random() < 0.05:
            self.past.append(data)

    def _pass(self, sender: PublicKey, to: PublicKey, data: bytes, frame: AuthorityFrame) -> None:
        if self.members[to].is_faulty:
            self.members[to].hear(sender, data, frame)
        else:
            self._peers[sender].send((to,), frame)

    async def _later(self, moment: float, call: Callable[[], None]) -> None:
        await self._env.sleep_until(moment)
        self._look_around()
        call()
        self._moved.set()

    async def _tick(self) -> None:
        while True:
            self._look_around()
            for member in self.faulty:
                member.tick()
            due = min((m.machine.deadline for m in self.faulty if m.machine is not None), default=math.inf)
            self._moved = trio.Event()
            with trio.move_on_after(min(1.0, max(0.0, due - self._env.now()))):
                await self._moved.wait()

    def _look_around(self) -> None:
        """See what time it is, and what honest ones hold."""
        self.now = self._env.now()
        for member in self.honest:
            member.machine = self._look(member.key)
            if member.machine is not None:
                member.disk = member.machine.kept

    async def _hear(self, member: SimulatedAuthority, sender: PublicKey, frame: PeerFrame) -> None:
        await trio.lowlevel.checkpoint()
        if not isinstance(frame, ExchangeFrame):
            self._look_around()
            member.hear(sender, encode(frame), frame)
            self._moved.set()

    def made_up(self, epoch: int) -> CertifiedHead:
        """Return a head with the signatures of all who are faulty, and none of others."""
        return self._faulty.made_up(epoch)

    async def _answer(
        self,
        member: SimulatedAuthority,
        peers: AuthorityLinks,
        desk: FaultyAnswers | None,
        stream: trio.abc.Stream,
    ) -> None:
        link = Link.respond(
            self.network.id, member.seed, self._env.randomness, MAX_STRANGERS_FRAME, larger=peers.largest
        )
        channel = Channel(stream, link, decode_peer_frame)
        try:
            await channel.handshake()
            if peers.knows(channel.peer):
                await peers.serve(channel)
            elif desk is not None:
                asking = channel.speaking(decode_directory_request)
                answer = desk.answer(member.seed, await asking.one(ASKED_WITHIN))
                if answer is None:
                    await trio.sleep(SILENCE)
                else:
                    await asking.send(answer)
                    await asking.finish()
        except (PeerError, TransportError):
            pass
        finally:
            await channel.aclose()


class _Honest(SimulatedAuthority):
    """What the adversary sees of an honest authority."""

    def __init__(self, world: AuthoritiesWorld, key: PublicKey) -> None:
        self.world, self.key, self.is_faulty = world, key, False
        self.machine = None
        self.disk = AuthorityState(ChainState(world.authorities))
