"""Several directories as the source of rosters, of which a minority may lie, be old, or be silent.

They are asked in random order: the next one where one does not answer in time, does not say the truth, or has
nothing new. What counts is a head with the signatures of a quorum, whoever shows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NoReturn, TypeVar

import msgspec
import trio

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_directory.client.roster_source import (
    NOTHING,
    CheckPart,
    DirectoryStatus,
    FetchedRoster,
    SeatTerms,
)
from hushcast_directory.client.trust import DirectoryKeyChanged
from hushcast_directory.client.trusted_authorities import TrustedAuthorities
from hushcast_protocol.authorities.authority_set import AuthorityContact
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.directory_requests import HeadAnswer, KeySuccession
from hushcast_protocol.authorities.head_answers import roster_of
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import CertifiedHead, decode_head, head_digest
from hushcast_protocol.authorities.name_work import NameWork, beacon_for
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.key_handovers import KeyHandover
from hushcast_protocol.base.roster import Network, Roster
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.versions.wires import OtherWire
from hushcast_protocol.base.wire import PublicKey, RelayId, encode
from hushcast_protocol.shards.shard_requests import PartAnswer, PartRequest
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store, record_reader
from hushcast_runtime.transports.base import TransportError

PATIENCE = 20.0  # seconds after which another one is asked as well; a first contact takes one to five

T = TypeVar("T")
_decode_agreed = record_reader(HeadAnswer, "roster")

ReadAgreed = Callable[[HeadAnswer, Network], Roster]
Reach = Callable[[AuthorityContact], DirectoryClient]
"""Makes what asks one directory."""


class SeveralDirectories:
    """Implements `RosterSource`."""

    def __init__(
        self,
        env: Environment,
        store: Store,
        network: Network,
        following: TrustedAuthorities,
        reach: Reach,
        counters: Counters,
        read: ReadAgreed = roster_of,
    ) -> None:
        self._env = env
        self._store = store
        self._network = network
        self._following = following
        self._reach = reach
        self._counters = counters
        self._read = read
        self._next: ChainState | None = None
        """Where the roster fetched last leads, once it is taken."""
        self._waiting: dict[RelayId, int] = {}
        self._answered: dict[PublicKey, bool] = {}
        self._without = 0  # of those asked last, how many had no head
        # Asked half a lead late, and with two who are silent, a roster still comes before its epoch.
        self._patience = min(PATIENCE, network.calendar.lead / 6)

    @property
    def has_begun(self) -> bool:
        """Whether a head was ever taken."""
        return self._following.state is not None

    @property
    def awaits_first(self) -> bool:
        """Whether more than half of several said when they were last asked that there is no head yet.

        They agree on the first at a moment that is known; one alone publishes it at once.
        """
        count = len(self._following.members())
        return not self.has_begun and 1 < count < 2 * self._without

    def pin(self, key: PublicKey) -> None:
        """Pin another key of a directory alone."""
        self._following.pin(key)

    def hand_over(self, handovers: Sequence[KeyHandover]) -> Change:
        """Follow the one directory that is known to another key; return what is to be kept."""
        return self._following.hand_over(handovers)

    @property
    def since(self) -> int:
        """The first epoch of the authorities of now, as far as it is known."""
        return 0 if self._following.state is None else self._following.state.since

    def wire(self, epoch: int) -> NetworkWire | None:
        """Return what the network speaks in an epoch of about now, `None` while no head was seen."""
        return self._following.wire(epoch)

    async def load(self) -> None:
        """Read back which heads were followed."""
        await self._following.load(self._store)

    def restored(self, record: bytes) -> Roster:
        """Return a roster that was kept."""
        agreed = _decode_agreed(record)
        self._following.check(agreed.heads[-1])
        self._waiting = dict(agreed.waiting)  # rosters are restored in order: that of the newest stays
        return self._read(agreed, self._network)

    async def fetch(self, after: int | None, held: Roster | None) -> FetchedRoster:
        """Return the roster of the first head after an epoch, or of the newest."""
        if self._following.forked is not None:
            raise AuthenticationError(self._two_heads())
        newest = self._following.newest
        if after is not None and newest is not None and after < newest.epoch <= self._latest():
            after = None  # heads were followed whose rosters could not be read here
        found: list[tuple[FetchedRoster, ChainState]] = []
        problems: list[Exception] = []
        members = self._following.members()
        answered, nothing_new, are_asked = 0, False, False
        self._without = 0
        async with trio.open_nursery() as nursery:

            def stop_if_enough() -> None:
                # Once all had their time, a minority that is silent keeps nobody waiting.
                if found or (are_asked and 2 * answered > len(members)):
                    nursery.cancel_scope.cancel()

            async def ask(member: AuthorityContact, asked: trio.Event) -> None:
                nonlocal answered, nothing_new
                try:
                    agreed = await self._ask(member, after)
                    self._without += not agreed.heads
                    taken = await self.examine(agreed, held)
                    if taken is not None:
                        found.append(taken)
                    else:
                        nothing_new = True
                except (TransportError, PeerError, Refusal) as error:
                    problems.append(error)
                answered += 1
                stop_if_enough()
                asked.set()

            for member in self._env.sample(members, len(members)):
                asked = trio.Event()
                nursery.start_soon(ask, member, asked)
                with trio.move_on_after(self._patience):
                    await asked.wait()
            are_asked = True
            stop_if_enough()
        if self._following.forked is not None:  # whatever another one answered meanwhile
            raise AuthenticationError(self._two_heads())
        if not found and not nothing_new:
            raise next((one for one in problems if isinstance(one, OtherWire)), problems[-1])
        return self.lead(*found[0]) if found else NOTHING

    async def examine(
        self, agreed: HeadAnswer, held: Roster | None
    ) -> tuple[FetchedRoster, ChainState] | None:
        """Return the roster of an answer and where its heads lead, `None` if it is nothing new.

        Raises a `PeerError` for what no honest authority answers, and for a fork, of which the proof is kept.
        """
        if not agreed.heads:
            return None
        try:
            state = await self._led_to(agreed.heads)
            last = agreed.heads[-1]
            if state.newest is None or state.newest.head != last.head:
                return None  # older than what is held
            if held is not None and head_digest(last.head) == held.digest:
                return None
            if not decode_head(last.head).authorities.is_spoken:
                await self._store.write(self._following.move(state))
            # A signature for each relay: in a big network too long for the scheduler to wait.
            roster = await self._env.compute(self._read, agreed, self._network)
        except OtherWire:
            raise
        except PeerError:
            if self._following.forked is None:
                self._counters.add("heads_refused")
            raise
        self._waiting = dict(agreed.waiting)
        record = encode(msgspec.structs.replace(agreed, heads=(last,), more=False))
        return FetchedRoster(roster, record, agreed.more), state

    async def _led_to(self, heads: Sequence[CertifiedHead]) -> ChainState:
        """Return where heads lead that a directory shows; raise a `PeerError`, and for a fork."""
        state = self._following.after(heads, self._latest())
        if state.fork is not None:
            await self._stop(state)
        return state

    async def learn(self, member: AuthorityContact | None = None) -> None:
        """Follow the heads that a directory of another wire shows: one of them, or the one that is pinned.

        Raises `OtherWire` where the network speaks what is not spoken here. Where it does not, and did not
        before, nothing is kept: its rosters tell as much.
        """
        member, newest = member or self._following.members()[0], self._following.newest
        try:
            after = None if newest is None else newest.epoch
            shown = await self._heard(member, self._reach(member).heads(after))
            state = await self._led_to(shown.heads)
        except (TransportError, PeerError) as error:
            log.debug("a directory of another wire shows no heads", reason=str(error))
        else:
            heads = newest, None if state.newest is None else decode_head(state.newest.head)
            if newest is None or any(one is not None and not one.authorities.is_spoken for one in heads):
                await self._store.write(self._following.move(state))
        self._check_spoken()

    async def learn_at_first(self, member: AuthorityContact | None = None) -> None:
        """Learn which of several wires is spoken, before any head: the newest would tell a release."""
        if self._following.newest is None and wires.spoken().lowest < wires.spoken().highest:
            await self.learn(member)

    def _check_spoken(self) -> None:
        wire = self.wire(self._network.calendar.epoch(self._env.now()))
        if wire is not None:
            wire.check()

    def _latest(self) -> int:
        """Return the last epoch that there may be a head of."""
        calendar = self._network.calendar
        return calendar.epoch(self._env.now() + calendar.lead) + 1

    async def compare(self, epoch: int) -> None:
        """Ask all for the head of an epoch: a peer shows another than ours, and one of them may have it.

        A directory that does not answer in time may be silent on purpose, and is not waited for.
        """
        shown: list[CertifiedHead] = []
        async with trio.open_nursery() as nursery:

            async def ask(member: AuthorityContact) -> None:
                with suppress(TransportError, PeerError, Refusal):
                    shown.extend((await self._ask(member, epoch - 1)).heads)

            nursery.cancel_scope.deadline = trio.current_time() + self._patience
            for member in self._following.members():
                nursery.start_soon(ask, member)
        state = self._following.state
        newest = state.newest if state is not None else None
        if newest is not None and self._following.forked is None:
            forked = await self._env.compute(self._following.forked_by, [newest, *shown])
            if forked is not None:
                await self._stop(forked)

    async def _stop(self, state: ChainState) -> NoReturn:
        """Keep proof of a fork, and take nothing any more."""
        await self._store.write(self._following.move(state))
        log.error("two heads of one epoch: no roster is taken", epoch=self._following.forked)
        raise AuthenticationError(self._two_heads())

    def lead(self, fetched: FetchedRoster, state: ChainState) -> FetchedRoster:
        """Note where a roster leads, until it is taken."""
        self._next = state
        return fetched

    def following(self, roster: Roster) -> Sequence[Change]:
        """Follow the heads that led to the roster fetched last."""
        state, self._next = self._next, None
        if state is None or state.newest is None or head_digest(state.newest.head) != roster.digest:
            return ()
        return (self._following.move(state),)

    async def ask(self, request: PartRequest, check: CheckPart | None = None) -> PartAnswer:
        """Return a part of a network in shards from the first one that shows it."""
        found: list[PartAnswer] = []
        problems: list[Exception] = []
        async with trio.open_nursery() as nursery:

            async def ask_one(member: AuthorityContact, asked: trio.Event) -> None:
                try:
                    found.append(await self._part(member, request, check))
                    if len(nursery.child_tasks) > 1:  # as a rule nobody else was asked
                        nursery.cancel_scope.cancel()
                except (TransportError, PeerError, Refusal) as error:
                    problems.append(error)
                asked.set()

            members = self._following.members()
            for member in self._env.sample(members, len(members)):
                asked = trio.Event()
                nursery.start_soon(ask_one, member, asked)
                with trio.move_on_after(self._patience):
                    await asked.wait()
                if found:
                    break
        if not found:
            raise problems[-1]
        return found[0]

    async def _part(
        self, member: AuthorityContact, request: PartRequest, check: CheckPart | None
    ) -> PartAnswer:
        answer = await self._heard(member, self._reach(member).part(request))
        if check is not None:
            try:
                await self._env.compute(check, answer)
            except PeerError:
                self._counters.add("heads_refused")
                raise
        return answer

    async def register(self, descriptor: Signed, work: NameWork | None = None) -> None:
        """Hand in a descriptor at all authorities; more than half of those of now take it, or it raises."""
        self._check_spoken()
        now, coming = self._following.members(), self._following.coming()
        keys = {member.key for member in now}
        took: set[PublicKey] = set()
        problems: list[Exception] = []
        async with trio.open_nursery() as nursery:

            async def hand_in(member: AuthorityContact) -> None:
                try:
                    await self._reach(member).register(descriptor, work)
                except (TransportError, PeerError, Refusal) as error:
                    problems.append(error)
                    return
                took.add(member.key)
                if 2 * len(took & keys) > len(keys) and nursery.cancel_scope.deadline > trio.current_time():
                    # The others have their time, but a silent one does not keep a relay waiting.
                    deadline = trio.current_time() + self._patience
                    nursery.cancel_scope.deadline = min(nursery.cancel_scope.deadline, deadline)

            for member in (*now, *coming):
                nursery.start_soon(hand_in, member)
        if 2 * len(took & keys) <= len(keys):
            raise Refusal(f"{len(took & keys)} of {len(keys)} directories took it: {problems[-1]}")

    def terms(self) -> SeatTerms | None:
        """Return what newcomers meet by the newest head."""
        head = self._following.newest
        if head is None or not head.authorities.is_spoken:
            return None
        return SeatTerms(
            head.epoch,
            head.authorities.admission,
            beacon_for(inside_of(head).draw, head.epoch),
            self._waiting,
        )

    def reached(self) -> DirectoryStatus:
        """Tell how many there are and answered when they were last asked."""
        keys = {member.key for member in self._following.members()}
        silent = sum(not self._answered.get(key, True) for key in keys)
        return DirectoryStatus(len(keys), len(keys) - silent, self._following.forked)

    async def _ask(self, member: AuthorityContact, after: int | None) -> HeadAnswer:
        try:
            await self.learn_at_first(member)
            self._check_spoken()
            answer = await self._heard(member, self._reach(member).roster(after))
        except OtherWire:
            await self.learn(member)
            raise
        if isinstance(answer, KeySuccession) and len({one.key for one in self._following.members()}) == 1:
            raise DirectoryKeyChanged(answer.handovers)
        if not isinstance(answer, HeadAnswer):
            self._counters.add("heads_refused")
            raise DecodeError("a directory answers alone, but is one of several")
        return answer

    async def _heard(self, member: AuthorityContact, answer: Awaitable[T]) -> T:
        """Return what a directory answers, and note whether it does."""
        try:
            given = await answer
        except (TransportError, PeerError):
            self._answered[member.key] = False
            raise
        self._answered[member.key] = True
        return given

    def _two_heads(self) -> str:
        return (
            f"the directories agreed on two rosters for epoch {self._following.forked}:"
            " none is taken any more, and their operators have to begin anew"
        )
