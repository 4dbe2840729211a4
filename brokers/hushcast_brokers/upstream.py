"""Upstream: the one link to a parent, opened under a name and kept; requests go up it, messages come down.

A broker's parent is the one that the tree says, a client's the edge broker that it attaches to.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import trio

from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.tasks import Tasks
from hushcast_brokers.tree_request import BrokerContact, ask_for_tree
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.link.hop_link import MAX_UNACKNOWLEDGED, QUIET
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    Ack,
    BrokerVerdict,
    Communities,
    ExposureReport,
    Forward,
    FromAbove,
    NewCharter,
    NewTree,
    ParentHello,
    Ping,
    RequestAnswer,
    decode_from_above,
)
from hushcast_protocol.brokers.full.aggregation import Factors
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.content.messages import MAX_BODY, Message
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.context import Context
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, open_channel
from hushcast_runtime.transports.channel_writer import Writer
from hushcast_runtime.transports.drawn_answers import DrawnAnswers

SILENT = 3 * QUIET  # seconds without a frame, signs of life included, after which the link is dead
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts to reach the parent
ASK_OTHERS_AFTER = 3  # attempts that failed before somebody else is asked for a newer tree
AT_ONCE = 100  # messages of one commit: with fewer, a slow disk has what is wanted taken at a lower rate
MAX_AHEAD = MAX_UNACKNOWLEDGED + MAX_BODY  # bytes of bodies that came and are not acknowledged

ParentState = Literal["open", "not listed", "not reached"]
"""`not listed`: the parent closed the link before it said how this child stands."""


class Parent(NamedTuple):
    """Whom a link is kept to, and under which name."""

    peer: BrokerContact
    seed: Seed


class UpstreamOwner(Protocol):
    """Whose link it is."""

    def parent(self) -> Parent | None:
        """Return whom to keep a link to now, if anybody."""

    def others(self) -> Sequence[BrokerContact]:
        """Return whom to ask for a newer tree while there is no parent, or it is not reached."""

    async def opened(self, standing: ParentHello) -> None:
        """Bring the parent up to date, which has this of us; runs beside what comes, until the link ends."""

    async def linked(self) -> None:
        """Ask the parent for what else is needed, as `opened`."""

    async def take(self, messages: list[Message]) -> None:
        """Take messages; durable on return."""

    def exposed(self, exposed: ExposureReport) -> None:
        """Hear how a subscription stands."""

    def charters(self, frame: Communities | NewCharter) -> None:
        """Hear of communities."""


class PendingAnswer:
    """An answer, once it is there; none if the link ended."""

    __slots__ = ("factors", "over", "verdict")

    def __init__(self) -> None:
        self.over = trio.Event()
        self.verdict: BrokerVerdict | None = None
        self.factors: Factors | None = None


@dataclass
class _Open:
    """The link while it is open."""

    parent: Parent
    channel: Channel[FromAbove]
    writer: Writer
    answers: DrawnAnswers
    tasks: Tasks
    theirs: int
    """The version of the tree that the parent holds, as far as is known."""
    began: float = field(default_factory=trio.current_time)
    is_futile: bool = False
    """It was given up soon after it had opened, and so will be the next."""
    standing: ParentHello | None = None
    serial: int = 0
    awaited: dict[int, PendingAnswer] = field(default_factory=dict)
    came: deque[Message] = field(default_factory=deque)
    size: int = 0
    more: trio.Event = field(default_factory=trio.Event)


class Upstream:
    """One daemon's link up."""

    def __init__(
        self,
        network: BrokersNetwork,
        tree: HeldTree,
        below: UpstreamOwner,
        transport: Transport,
        context: Context,
    ) -> None:
        self._network = network
        self._tree = tree
        self._below = below
        self._transport = transport
        self._env = context.env
        self._counters = context.counters
        self._spawn = context.spawn
        self._open: _Open | None = None
        self._turns = 0
        self._looks = trio.Event()
        self.contact = Contact(context.env.elapsed)
        """What became of the last attempts to be a child of whoever is the parent."""
        self.state: ParentState = "not reached"
        self._told: ParentState | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether the parent is there."""
        return self._open is not None and self._open.standing is not None

    def look(self) -> None:
        """See now whether there is another parent than before, or a newer tree to tell it."""
        self._looks.set()
        if self._open is not None:
            self._look_at(self._open)

    def post(self, make: Callable[[int], Wire]) -> PendingAnswer:
        """Send a request, made with its serial, after all before it; `TransportError` without a link."""
        link = self._open
        if link is None or link.standing is None:
            raise TransportError("the parent is not there")
        link.serial += 1
        awaited = link.awaited[link.serial] = PendingAnswer()
        link.writer.post(make(link.serial))
        return awaited

    def say(self, frame: Wire) -> None:
        """Say something that is not answered; `TransportError` without a link."""
        if self._open is None:
            raise TransportError("the parent is not there")
        self._open.writer.post(frame)

    async def answer(self, awaited: PendingAnswer) -> BrokerVerdict:
        """Return the answer to a request; raise `TransportError` where the link ends first.

        It may take as long as somebody further up is away.
        """
        await awaited.over.wait()
        if awaited.verdict is None:
            raise TransportError("the link to the parent ended before it answered")
        return awaited.verdict

    async def factors(self, awaited: PendingAnswer) -> Factors:
        """Return the answer to a question for factors; raise as `answer`, and `Refusal` for none."""
        verdict = await self.answer(awaited)
        if awaited.factors is None:
            raise Refusal("form" if verdict == "accepted" else verdict)
        return awaited.factors

    async def ask(self, make: Callable[[int], Wire]) -> BrokerVerdict:
        """Send a request and return its answer; raise as `post` and `answer` do."""
        return await self.answer(self.post(make))

    async def run(self) -> None:
        """Keep the link open until cancelled, to whoever is the parent."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow)
            await self._keep()

    async def _keep(self) -> None:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._env.randomness)
        failed = 0
        while True:
            self._looks = trio.Event()
            parent = self._below.parent()
            if parent is not None and await self._was_open(parent):
                failed = 0
                backoff.reset()
            else:
                failed += 1
                if parent is not None:
                    self.contact.note(worked=False)
            if parent is None or self.state == "not listed" or failed >= ASK_OTHERS_AFTER:
                await self._ask_another()
            if self._below.parent() == parent:
                has_anybody = parent is not None or self._below.others()
                with trio.move_on_after(backoff.next() if has_anybody else math.inf):
                    await self._looks.wait()

    async def _was_open(self, parent: Parent) -> bool:
        """Keep a link for as long as it lasts; return whether it was of use: this was a child there."""
        try:
            return await self._live(parent)
        except (PeerError, TransportError) as error:
            self._note_fault(error)
            return False

    def _note_fault(self, error: PeerError | TransportError) -> None:
        self._counters.add("parent_faults" if isinstance(error, PeerError) else "links_failed")
        log.debug("the parent was not reached, or the link to it broke", reason=str(error))

    async def _ask_another(self) -> None:
        """Ask the next of those who may have a newer tree."""
        if not (others := self._below.others()):
            return
        self._turns += 1
        other = others[self._turns % len(others)]
        try:
            await ask_for_tree(self._network, self._tree, other, self._transport, self._env)
        except (PeerError, TransportError) as error:
            self._counters.add("links_failed")
            log.debug("nobody else was reached who may have a newer tree", reason=str(error))

    async def _live(self, parent: Parent) -> bool:
        view, wire = self._tree.view, self._tree.spoken(self._env.now())
        link = Link.initiate(
            self._network.id, parent.peer.key, self._env.randomness, MAX_BROKER_FRAME, parent.seed, view, wire
        )
        try:
            channel, established = await open_channel(
                self._transport, parent.peer.address, self._env.isolation(), link, decode_from_above
            )
        except (PeerError, TransportError):
            self._note("not reached")
            raise
        theirs = established.view or view
        answers = DrawnAnswers(self._env, self._tree.wire(self._env.now()).manner.acknowledges_within)
        now = self._open = _Open(
            parent, channel, Writer(channel, self._spawn), answers, Tasks(self._spawn), theirs.epoch
        )
        was_broken = True
        try:
            with now.writer.scope as scope:
                scope.deadline = trio.current_time() + SILENT
                self._look_at(now)
                await self._hear(now)
                was_broken = False
        except TransportError as error:
            if now.standing is None:
                raise
            self._note_fault(error)  # it was open all the same
        finally:
            self._note("not reached" if was_broken or now.standing is not None else "not listed")
            self._end(now)
            await channel.aclose()
        return now.standing is not None and not now.is_futile

    async def _hear(self, link: _Open) -> None:
        while batch := await link.channel.receive():
            link.writer.scope.deadline = trio.current_time() + SILENT
            for frame in batch:
                await self._take(link, frame)

    async def _take(self, link: _Open, frame: FromAbove) -> None:
        if isinstance(frame, NewTree):
            said = await self._tree.take(frame.tree)
            link.theirs = max(link.theirs, said)
        elif isinstance(frame, ParentHello):
            if link.standing is not None:
                raise DecodeError("a parent says twice how its child stands")
            link.standing = frame
            self._counters.add("links_opened")
            self.contact.note(worked=True)
            self._note("open")
            link.tasks.start(self._within, link, self._below.opened, frame)
            link.tasks.start(self._within, link, self._below.linked)
            link.tasks.start(self._within, link, self._hand_in, link)
            link.tasks.start(self._within, link, self._acknowledge, link)
            link.tasks.start(self._within, link, self._show_life, link)
        elif link.standing is None:
            raise DecodeError("a parent begins with something else than how its child stands")
        elif isinstance(frame, Forward):
            link.size += len(frame.message.body)
            if link.size > MAX_AHEAD:
                raise DecodeError("a parent sends more than may be under way")
            link.came.append(frame.message)
            link.answers.came(1)
            link.more.set()
        elif isinstance(frame, RequestAnswer | Factors):
            if (awaited := link.awaited.pop(frame.serial, None)) is None:
                raise DecodeError("a parent answered what nobody asked")
            if isinstance(frame, Factors):
                awaited.factors = frame
                awaited.verdict = "accepted"
            else:
                awaited.verdict = frame.verdict
            awaited.over.set()
        elif isinstance(frame, ExposureReport):
            self._below.exposed(frame)
        elif isinstance(frame, Communities | NewCharter):
            self._below.charters(frame)

    async def _hand_in(self, link: _Open) -> None:
        """Hand in what comes; some at a time."""
        while True:
            await link.more.wait()
            messages = [link.came.popleft() for _ in range(min(AT_ONCE, len(link.came)))]
            if not link.came:
                link.more = trio.Event()
            await self._below.take(messages)
            link.answers.take(len(messages))
            link.size -= sum(len(message.body) for message in messages)
            await link.answers.rest(len(messages))

    async def _acknowledge(self, link: _Open) -> None:
        """Acknowledge what is durable, at moments that are drawn."""
        while True:
            link.writer.post(Ack(await link.answers.next()))

    def _look_at(self, link: _Open) -> None:
        """End a link to whoever is no parent any more; tell one who is a newer tree."""
        if self._below.parent() != link.parent:
            link.writer.scope.cancel()
        else:
            self._tell(link)

    def _tell(self, link: _Open) -> None:
        """Say a newer tree than the parent holds."""
        tree = self._tree.newest
        if tree is not None and tree.version > link.theirs:
            link.theirs = tree.version
            link.writer.post(NewTree(tree.signed))

    async def _follow(self) -> None:
        while True:
            await self._tree.changed()
            self.look()

    async def _show_life(self, link: _Open) -> None:
        while True:
            await trio.sleep(link.answers.quiet(QUIET))
            link.writer.post(Ping())

    async def _within(self, link: _Open, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Do something that ends the link with what it raises."""
        try:
            with ungrouped(PeerError, TransportError):
                await work(*args)
        except (PeerError, TransportError) as error:
            if isinstance(error, PeerError):
                self._counters.add("parent_faults")
            log.debug("the link to the parent was given up", reason=str(error))
            link.is_futile = trio.current_time() < link.began + LONGEST_PAUSE
            link.writer.scope.cancel()

    def _end(self, link: _Open) -> None:
        self._open = None
        link.writer.scope.cancel()
        link.tasks.end()
        for awaited in link.awaited.values():
            awaited.over.set()

    def _note(self, state: ParentState) -> None:
        self.state = state
        if state == self._told:
            return
        self._told = state
        if state == "open":
            log.info("connected to the parent")
        elif state == "not listed":
            log.info("waiting for the parent to list this daemon")
        else:
            log.warning("the parent is not reached")
