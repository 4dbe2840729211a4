"""Drives the machine of one authority by its clock, its disk and its links, and serves its heads.

Moves of the machine are one after the other, and in another thread than the loop's: to count the ballots of
16,384 relays and to cut these takes some 0.3 s of a processor, to take their listing 50 ms.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable

import trio

from hushcast_directory.server.archive import Archive, epoch_key, epoch_of
from hushcast_directory.server.authority_links import AuthorityLinks
from hushcast_directory.server.configured_set import ConfiguredSet, SetOfOne
from hushcast_directory.server.exchange import Check, Exchange
from hushcast_directory.server.kept_evidence import AUTHORITY, EVIDENCE, MAX_EVIDENCE, read_evidence
from hushcast_directory.server.name_work import NameWorkRegister
from hushcast_directory.server.restoration import last_restored, silence
from hushcast_directory.server.resumption import LISTING, FutureHeads, kept_listings, resume
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities import actions as act
from hushcast_protocol.authorities.actions import AuthorityActions, AuthorityCommand
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.descriptor_exchange import ExchangeFrame, PeerFrame
from hushcast_protocol.authorities.directory_requests import DirectoryRefusal, Fetch, HeadAnswer
from hushcast_protocol.authorities.evidence import Evidence
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import decode_head
from hushcast_protocol.authorities.listing import ListedRelay, Listing
from hushcast_protocol.authorities.machine import MAX_LISTINGS, Authority
from hushcast_protocol.authorities.schedule import schedule
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Descriptor
from hushcast_protocol.base.trusted_clock import FOLLOWED_AFTER
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_protocol.shards.shard_requests import PartAnswer, PartRequest
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import LOOK_EVERY
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store
from hushcast_runtime.transports.base import Transport

TELLS = 24  # times an epoch that descriptors which came since are told: four times while others wait for them
_ANY_TIME = -math.inf, math.inf


class AuthorityDriver:
    """One authority; `run` serves it."""

    def __init__(
        self,
        clock: DaemonClock,
        transport: Transport,
        roll: Roll,
        sitting: ConfiguredSet | SetOfOne,
        check: Check,
        counters: Counters,
        prepare: Callable[[], Awaitable[None]],
    ) -> None:
        """`check` reaches a relay at its address; `prepare` is called often, before ballots are cast."""
        self._env = env = clock.environment()
        self._clock = clock
        self._roll = roll
        self._store: Store = roll.store
        self._configured = sitting
        self._counters = counters
        self._prepare = prepare
        self._machine: Authority | None = None
        self._archive = Archive(roll.network.id, roll.store, env.compute)
        self.peers = AuthorityLinks(transport, roll.network.id, roll.seed, env, roll.calendar, self._hear)
        self.works = NameWorkRegister(
            roll.network.id, roll.lists, roll.store, env, lambda: counters.add("newcomers_turned_away")
        )
        """The work that relays have shown."""

        async def check_both(descriptor: Descriptor, listed: bool) -> None:
            if not self.works.lets(descriptor.relay, roll.calendar.epoch(env.now())):
                raise Refusal("this relay has not shown its work here")
            await check(descriptor, listed)

        self._exchange = Exchange(env, roll, self._archive, check_both, self.peers.send)
        self._ahead = FutureHeads(roll.seed.public(), roll, self._archive, env.compute)
        self._moves = trio.Lock()
        self._woken = trio.Event()
        self._waits: str | None = None
        self._restored = -1
        self.address: Address | None = None
        """Where this authority is, once that is known."""

    @property
    def epoch(self) -> int | None:
        """The epoch of the newest head that is served, `None` before the first."""
        return max(self._archive.epochs, default=None)

    @property
    def relays(self) -> int:
        """How many relays have a seat."""
        return len(self._roll.listed())

    @property
    def waiting(self) -> int:
        """How many wait for a seat, by the newest head."""
        return self._roll.waiting

    @property
    def machine(self) -> Authority | None:
        """What decides; `None` while what was kept is read."""
        return self._machine

    @property
    def doubt(self) -> str | None:
        """One line of what is wrong with the time; `None`: nothing."""
        return self._clock.problem() if self._waits is None else self._waits

    @property
    def silence(self) -> str | None:
        """One line of why nothing is signed after a backup was restored, and until when; `None`: it is."""
        return silence(self._roll.calendar, self._restored, self._clock.now())

    @property
    def problem(self) -> str | None:
        """One line for the operator of what is wrong; `None`: nothing."""
        if self._machine is not None and self._machine.chain.state.fork is not None:
            return "the authorities forked: this one votes no more, see `hushcast admin directory evidence`"
        problem = self.silence or self.doubt
        if problem is None and self.peers.is_cut_off:
            problem = "no other authority is reached"
        if problem is None and self._is_elsewhere():
            problem = "the other authorities look for this one at another address: see authorities.next"
        return problem

    def sit(self, sitting: ConfiguredSet | SetOfOne) -> None:
        """Take what the operator says of the others now: vote for another set from the next ballot on."""
        self._configured = sitting

    def note_registered(self) -> None:
        """Look at once whether enough relays have registered."""
        self._woken.set()

    async def run(self) -> None:
        """Agree with the others until cancelled."""
        await self._archive.load()
        await self.works.load()
        self._begin(await self._load())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.peers.run)
            nursery.start_soon(self._exchange.run)
            nursery.start_soon(self._keep_telling)
            while True:
                self._woken = trio.Event()
                async with self._moves:
                    deadline = await self._move()
                pause = min(LOOK_EVERY, self._roll.calendar.lead)
                if self._waits is None:
                    pause = min(pause, max(0.0, deadline - self._clock.now()))
                with trio.move_on_after(pause):
                    await self._woken.wait()

    async def _move(self) -> float:
        """Do what is due; return when something is next."""
        machine, now = self._machine, self._clock.now()
        assert machine is not None
        if self._is_certain(now) and (ahead := await self._ahead.take_back(machine.kept, now)) is not None:
            log.error("heads for a time to come are taken back", count=len(ahead))
            machine = await self._load()
        self._wait_because(self._doubt(machine))
        if self._waits is None:
            await self._do(machine, await self._alone(machine, now))
            if not self._is_alone(machine, now):
                await self._do(machine, await self._env.compute(machine.tick, now))
        if not self._is_alone(machine, now):
            return machine.deadline
        calendar = self._roll.calendar
        coming = calendar.epoch_start(calendar.epoch(now + calendar.lead) + 1)
        # When others would exchange descriptors it is seen whether there are any; then it is published.
        return min(at for at in (coming - calendar.grace, coming - calendar.lead) if at > now)

    def answer(self, request: Fetch) -> HeadAnswer | DirectoryRefusal:
        """Return the first head after an epoch that is kept, or the newest, with its relays; or a fork."""
        if self._machine is None:
            return DirectoryRefusal("this directory reads what it kept: try again")
        state = self._machine.chain.state
        after = -1 if request.after is None else request.after
        if state.fork is not None:
            before = [one for one in state.turns if epoch_of(one) > after]
            heads = (*before, state.fork.first, state.fork.second)
            return HeadAnswer(heads, (), (), False, None)
        found, more = self._archive.after(request.after)
        if found is None:
            return HeadAnswer((), (), (), False, None)
        listing = found.listing
        turns = [one for one in state.turns if after < epoch_of(one) < epoch_of(found.certified)]
        heads = (*turns, found.certified)
        if listing is None:
            return HeadAnswer(heads, (), (), more, None)
        shards = listing.shards_digest if listing.shards else None
        return HeadAnswer(heads, found.entries, listing.waiting, more, shards)

    def part(self, request: PartRequest) -> PartAnswer:
        """Return a part of the network where it is in shards, or a candidate list, if it is here."""
        return self._archive.part(request)

    async def _hear(self, sender: PublicKey, frame: PeerFrame) -> None:
        if isinstance(frame, ExchangeFrame):
            if await self._exchange.hear(sender, frame):
                self._tell_published()
            return
        async with self._moves:
            machine = self._machine  # of now: while others wait for their turn it may begin anew
            if machine is not None and self._waits is None:
                actions = await self._env.compute(machine.take, sender, frame, self._clock.now())
                await self._do(machine, actions)

    # From the disk

    async def _load(self) -> Authority:
        self._restored = await last_restored(self._store)
        kept, beginning = await resume(self._roll, self._set_of_now(), self._restored)
        machine = Authority(self._roll.network, self._roll.seed, kept, self._clock.now(), beginning)
        if beginning is not None:
            await self._roll.follow(beginning)
        self._machine = machine
        compute = self._env.compute
        for listing in await kept_listings(self._store, self._archive, kept, compute):
            await self._do(machine, await compute(machine.know, listing))
        return machine

    def _set_of_now(self) -> Authorities:
        """Return the authorities of now as the operator says."""
        assert self.address is not None
        return self._configured.at(self._roll.seed.public(), self.address)

    def _begin(self, machine: Authority) -> None:
        """Compare the clock with the newest head: it tells until when this authority was at work."""
        self.peers.follow(machine.chain.named(), machine.chain.head)
        if machine.chain.head is not None:
            self._clock.witness_roster(machine.chain.epoch)
        elif not self._clock.is_disputed:
            self._clock.witness(_ANY_TIME)

    # What the machine wants done

    async def _do(self, machine: Authority, actions: AuthorityActions) -> None:
        todo = deque(actions)
        while todo:
            action = todo.popleft()
            if action is AuthorityCommand.GATHER:
                await self._gather(machine)
            elif action is AuthorityCommand.VOTE:
                todo.extendleft(reversed(await self._vote(machine)))
            elif isinstance(action, act.Keep):
                await self._keep(machine, action)
            elif isinstance(action, act.SendFrame):
                self.peers.send(action.to, action.frame)
            elif isinstance(action, act.PublishHead):
                await self._publish(machine, action)
            elif isinstance(action, act.Accuse):
                await self._accuse(action.evidence)
            else:
                self._counters.add("forks_found")
                log.error("two heads of one epoch are signed by a quorum: this authority stops")

    async def _gather(self, machine: Authority) -> None:
        head, epoch = machine.chain.head, machine.epoch
        if head is not None and epoch is not None and head.epoch < epoch - 1:
            self._counters.add("heads_missed")
            log.warning("there was no head", epoch=epoch - 1)
        await self._exchange.begin(self._others(machine))

    async def _vote(self, machine: Authority) -> AuthorityActions:
        now, epoch = self._clock.now(), machine.epoch
        head = machine.chain.head
        if epoch is None or (head is None and self._roll.count(now) < self._configured.first):
            return []
        authorities = machine.chain.in_charge(epoch)
        assert authorities is not None
        agreed = schedule(self._roll.calendar, epoch, authorities).gathered
        listed = await self._ballot(epoch, agreed)
        actions = await self._env.compute(machine.cast, listed, self._following(machine), now)
        if actions:
            self._counters.add("ballots_cast")
        return actions

    def _is_alone(self, machine: Authority, now: float) -> bool:
        """Tell whether nobody else has a part in the head that is agreed on now: it waits for its moment."""
        calendar = self._roll.calendar
        authorities = machine.chain.in_charge(calendar.epoch(now + calendar.epoch_seconds / 2))
        return authorities is not None and authorities.keys == (machine.key,)

    async def _alone(self, machine: Authority, now: float) -> AuthorityActions:
        """Publish what is missing where there is no other authority."""
        epoch = machine.due_alone(now)
        if epoch is None or (self._roll.count(now) < self._configured.first and machine.chain.head is None):
            return []
        listed = await self._ballot(epoch, math.inf)
        return await self._env.compute(machine.alone, listed, self._following(machine), now)

    def _following(self, machine: Authority) -> Authorities | None:
        """Return whom to vote for, and what the network should speak."""
        return self._configured.voted(machine.chain.state.authorities, self._set_of_now())

    async def _ballot(self, epoch: int, agreed: float) -> tuple[ListedRelay, ...]:
        roll, was_away, lets = self._roll.as_now(), self._archive.has_gap(epoch), self.works.lets
        return await self._env.compute(
            lambda: tuple(one for one in roll.ballot(epoch, agreed, was_away) if lets(one[0], epoch))
        )

    async def _keep(self, machine: Authority, action: act.Keep) -> None:
        changes = [Change(AUTHORITY, b"", encode(action.kept))]
        if action.listing is not None:
            changes += await self._listing_changes(action.listing)
        await self._store.write(*changes)
        self.peers.follow(machine.chain.named(), machine.chain.head)

    async def _listing_changes(self, listing: Listing) -> list[Change]:
        key, record = epoch_key(listing.epoch), encode(listing)
        held = dict(await self._store.scan(LISTING))
        if held.get(key) == record:
            return []  # as a rule: it was kept before it was assented to
        stay = sorted({*held, key})[-MAX_LISTINGS:]
        return [
            Change(LISTING, key, record),
            *(Change(LISTING, old, None) for old in held if old not in stay),
        ]

    async def _publish(self, machine: Authority, action: act.PublishHead) -> None:
        head = decode_head(action.certified.head)
        await self._store.write(*await self._listing_changes(action.listing))
        today = inside_of(head).draw.today
        await self._roll.follow(action.listing, head.authorities, head.change)
        self.works.follow(head.epoch, head.authorities.admission.work, today)
        await self._roll.forget(self._clock.now())
        if len(head.authorities.members) > 1:
            self._clock.witness_roster(head.epoch)
        if await self._archive.begin(action.certified, action.listing, self._roll.find):
            self._tell_published()
        else:
            await self._exchange.ask_missing(self._others(machine))

    async def _accuse(self, evidence: Evidence) -> None:
        self._counters.add("evidence_found")
        log.error("an authority said two things for one epoch")
        key = digest(Domain.LISTING, encode(evidence), size=LABEL)
        held = [read_evidence(value).accused for _, value in await self._store.scan(EVIDENCE)]
        if held.count(evidence.accused) < MAX_EVIDENCE:  # whoever lies every day takes no other's place
            await self._store.write(Change(EVIDENCE, key, encode(evidence)))

    def _tell_published(self) -> None:
        self._counters.add("heads_published")
        log.info("head published", epoch=self.epoch, relays=self.relays)

    # When not to

    def _doubt(self, machine: Authority) -> str | None:
        """Return why this authority does not vote at this time."""
        if machine.chain.head is not None and self._clock.is_ahead(machine.chain.epoch):
            return "nothing is voted for: the newest head is for a time to come, check the clock"
        if self._clock.steady_for() < self._roll.calendar.lead:
            return "nothing is voted for yet: the clock has moved far since the last head, check it"
        return None

    def _is_certain(self, now: float) -> bool:
        """Tell whether heads for a time to come were agreed on by a wrong clock: this one is right."""
        if self._clock.is_certain():
            return True
        # A clock that is wrong now is unlikely to show a time for which there is no head.
        followed_after = FOLLOWED_AFTER * self._roll.calendar.epoch_seconds
        return self._ahead.has_leapt(now) and self._clock.steady_for() >= followed_after

    def _wait_because(self, doubt: str | None) -> None:
        if doubt is not None and doubt != self._waits:
            log.warning("nothing is voted for", reason=doubt)
        self._waits = doubt

    def _is_elsewhere(self) -> bool:
        if self._machine is None or self.address is None or not self.peers.count:
            return False
        own = self._machine.chain.named().get(self._machine.key)
        return own is not None and own.address != self.address

    def _others(self, machine: Authority) -> tuple[PublicKey, ...]:
        return tuple(key for key in sorted(machine.chain.named()) if key != machine.key)

    async def _keep_telling(self) -> None:
        """Tell what came since, while others gather; they list what they heard of in time."""
        while True:
            await trio.sleep(self._roll.calendar.epoch_seconds / TELLS)
            await self._prepare()
            if self._machine is not None:
                await self._exchange.tell(self._others(self._machine))
