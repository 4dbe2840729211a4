"""The directory's server: answers daemons and other directories, checks relays before it lists them."""

from __future__ import annotations

from contextlib import suppress

import trio

from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.configured_set import ConfiguredSet, SetOfOne
from hushcast_directory.server.counters import DIRECTORY_COUNTERS
from hushcast_directory.server.reachability_checks import MAX_RENEWALS, ReachabilityChecks
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.directory_requests import (
    MAX_DIRECTORY_REQUEST,
    DirectoryAnswer,
    DirectoryRefusal,
    DirectoryRequest,
    Fetch,
    KeySuccession,
    RegisterRelay,
    RelayRegistered,
    decode_directory_request,
)
from hushcast_protocol.authorities.head_questions import AskHeads, Heads, decode_heads_question
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import Descriptor
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.wires import LASTING
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_protocol.shards.shard_requests import (
    AskCandidates,
    AskLeaf,
    AskPiece,
    AskSlice,
    PartAnswer,
    PartRequest,
)
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.other_wires import OtherWires
from hushcast_runtime.transports.base import Listener, Transport, TransportError
from hushcast_runtime.transports.channel import Channel, open_channel
from hushcast_runtime.transports.connection_slots import ConnectionSlots

MAX_CONNECTIONS = 1024  # that have not asked yet, or have a short answer; nothing is known of them
MAX_FETCHES = 128  # rosters, or parts of a network in shards, sent at once: each may take 2 MB of memory
REQUEST_TIMEOUT = 10.0  # seconds in which a connection must ask: two round trips, of a second each over Tor
ROSTER_WITHIN = 75.0  # seconds in which a roster must be taken: who asked waits 90


class DirectoryServer:
    """Serves one directory on one listener."""

    def __init__(
        self,
        env: Environment,
        transport: Transport,
        roll: Roll,
        sitting: ConfiguredSet | SetOfOne,
        counters: Counters | None = None,
    ) -> None:
        """`sitting` says with whom it agrees on heads, or that it is alone."""
        self.clock = DaemonClock(env, roll.calendar)
        self._env = self.clock.environment()
        self._transport = transport
        self._roll = roll
        self._counters = counters = counters or Counters(DIRECTORY_COUNTERS)
        self._strangers = ConnectionSlots(MAX_CONNECTIONS, env.below, self._note_dropped)
        self._fetches = ConnectionSlots(MAX_FETCHES, env.below, counters.add, "fetches_dropped")
        self._checks = ReachabilityChecks(self._reach, env, lambda: counters.add("newcomers_turned_away"))
        gathered = ReachabilityChecks(self._reach, env, lambda: None)
        self.agreeing = AuthorityDriver(
            self.clock, transport, roll, sitting, gathered.check, counters, self._carry_on
        )
        """What makes its heads."""
        self.other_wires = OtherWires(env.elapsed, counters)
        """Whom it met and cannot talk to."""
        self._flooded = False

    def _note_dropped(self) -> None:
        self._counters.add("connections_dropped")
        self._flooded = True

    async def run(self, listener: Listener) -> None:
        """Serve and agree until cancelled."""
        self.agreeing.address = listener.address
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.agreeing.run)
            await listener.serve(self._answer)

    async def _carry_on(self) -> None:
        """After a flood, check listed relays that could not renew: we may reach them all the same."""
        if not self._flooded:
            return
        self._flooded = False
        lapsing = self._roll.lapsing(self._env.now())
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = trio.current_time() + self._roll.calendar.lead / 2
            for _ in range(min(MAX_RENEWALS, len(lapsing))):
                nursery.start_soon(self._carry, lapsing)

    async def _carry(self, lapsing: list[Descriptor]) -> None:
        """Check one after the other, in random order, until none is left."""
        while lapsing:
            drawn = self._env.below(len(lapsing))
            lapsing[drawn], lapsing[-1] = lapsing[-1], lapsing[drawn]
            descriptor = lapsing.pop()
            with suppress(Refusal):
                await self._checks.check(descriptor, listed=True)
                self._roll.carry(descriptor.relay, self._env.now())
                self._counters.add("relays_carried")
            await trio.lowlevel.checkpoint()  # one that is being checked already is refused at once

    async def _answer(self, stream: trio.abc.Stream) -> None:
        former = self._roll.succession.seeds
        peers = self.agreeing.peers
        link = Link.respond(
            self._roll.network.id,
            self._roll.seed,
            self._env.randomness,
            MAX_DIRECTORY_REQUEST,
            former=former,
            larger=peers.largest,
            takes=(LASTING, *wires.spoken().numbers()),
            speaks=wires.spoken(),
        )
        channel = Channel(stream, link, decode_directory_request)
        try:
            with self._strangers.place(REQUEST_TIMEOUT):
                await channel.handshake()
                if link.wire == LASTING:
                    question = await channel.speaking(decode_heads_question).first()
                elif not peers.knows(channel.peer):
                    request = await channel.first()
            if link.wire == LASTING:
                with self._fetches.place(ROSTER_WITHIN):
                    await _tell(channel, self._heads(question))
            elif peers.knows(channel.peer):
                await peers.serve(channel)
            # Only now is the kind of the request known. Kinds that take long have places of their own.
            elif isinstance(request, Fetch):
                with self._fetches.place(ROSTER_WITHIN):
                    await _tell(channel, self._hand_over(link.answers_as) or self._roster(request))
            elif isinstance(request, AskSlice | AskPiece | AskCandidates):
                with self._fetches.place(ROSTER_WITHIN):
                    await _tell(channel, self._part(request))
            else:
                answer: DirectoryAnswer
                if isinstance(request, AskLeaf):
                    answer = self._part(request)
                else:
                    answer = await self._consider(request)
                with self._strangers.place(REQUEST_TIMEOUT):
                    await _tell(channel, answer)
        except (PeerError, TransportError) as error:
            self.other_wires.note(error)
            log.debug("connection ended", reason=str(error))
        finally:
            await channel.aclose()

    def _hand_over(self, known: PublicKey | None) -> KeySuccession | None:
        """Return how this directory came to its key, for who knows it by a former one."""
        handovers = self._roll.succession.after(known) if known is not None else ()
        return KeySuccession(handovers) if handovers else None

    def _roster(self, request: Fetch) -> DirectoryAnswer:
        self._counters.add("rosters_asked_for")
        return self.agreeing.answer(request)

    def _heads(self, question: AskHeads) -> Heads:
        """Return how one comes from the head of an epoch to the newest, of whatever wire they are."""
        self._counters.add("heads_asked_for")
        machine = self.agreeing.machine
        return Heads(() if machine is None else tuple(machine.chain.after(question.after)))

    def _part(self, request: PartRequest) -> PartAnswer:
        self._counters.add("parts_asked_for")
        return self.agreeing.part(request)

    async def _consider(self, request: RegisterRelay) -> RelayRegistered | DirectoryRefusal:
        try:
            answer = await self._register(request.descriptor, request.work)
        except Refusal as refusal:
            self._counters.add("registrations_refused")
            return DirectoryRefusal(refusal.reason)
        except PeerError as error:
            self._counters.add("registrations_refused")
            return DirectoryRefusal(str(error))
        self._counters.add("relays_registered")
        return answer

    async def _register(self, signed: Signed, work: NameWork | None) -> RelayRegistered:
        descriptor = self._roll.examine(signed, self._env.now())
        self._roll.refuse_expelled(descriptor.relay, self._env.now())
        # Anybody can hand in a descriptor from a roster: a known one causes no check.
        if not self._roll.holds(descriptor.relay, signed):
            epoch = self._roll.calendar.epoch(self._env.now())
            await self.agreeing.works.show(descriptor.relay, work, epoch)
            await self._checks.check(descriptor, self._roll.lists(descriptor.relay))
            await self._roll.admit(descriptor, signed)
            log.info("relay registered")
            self.agreeing.note_registered()
        return RelayRegistered()

    async def _reach(self, descriptor: Descriptor) -> None:
        # In the newest wire that both speak, so that what a relay says of itself was tried.
        wire = min(descriptor.speaks.highest, wires.spoken().highest)
        network, relay = self._roll.network.id, descriptor.relay
        link = Link.initiate(network, relay, self._env.randomness, MAX_OVERLAY_FRAME, wire=wire)
        address = parse_address(descriptor.address)
        try:
            channel, _ = await open_channel(
                self._transport, address, self._env.isolation(), link, decode_overlay
            )
        except (PeerError, TransportError) as error:
            self.other_wires.note(error)
            raise Refusal(f"the relay was not reached at its address: {error}") from None
        await channel.aclose()


async def _tell(channel: Channel[DirectoryRequest], answer: Wire) -> None:
    await channel.send(answer)
    await channel.finish()
