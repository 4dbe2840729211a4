"""The links to the service. Brokers state, ask and watch; anybody else asks, without a name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import cast

import trio

from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.tomography.counters import counter_of
from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.link.hop_link import IDLE
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerTree
from hushcast_protocol.brokers.frames import NewTree
from hushcast_protocol.brokers.tomography.frames import (
    Ask,
    AskReply,
    LargestK,
    NoAnswerReason,
    Ping,
    Pong,
    StateFilters,
    StatementRefused,
    ToService,
    Unwatch,
)
from hushcast_protocol.brokers.tomography.questions import question_digest
from hushcast_protocol.brokers.tomography.stranger_allowances import SECRET, Allowances
from hushcast_protocol.brokers.tomography.tomography_service import TomographyService
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.channel_writer import Writer
from hushcast_runtime.transports.connection_guard import strangers_room

ASK_WITHIN = 120.0  # seconds that somebody without a name may stay
# Brokers speak at the same moments, each of what it holds and then of what it asks: what is said within so
# many seconds is judged together. Watches are looked at no more often, as each look judges all that changed.
ADVANCE_AFTER = 1.0
# Statements and questions of one broker: a whole table twice at once, as each costs a signature's check.
ASKED_A_SECOND, ASKED_AT_ONCE = 64.0, 8192.0


class _Broker:
    """A broker's open link."""

    def __init__(self, key: PublicKey, writer: Writer, tree: int, now: float) -> None:
        self.key = key
        self.writer = writer
        self.tree = tree
        """The version of the tree that it was told."""
        self.stated = 0
        """Statements on this link so far."""
        self.bucket = TokenBucket(ASKED_A_SECOND, ASKED_AT_ONCE, now)


class ServiceLinks:
    """The open links of one service."""

    def __init__(self, tree: HeldTree, admission: Admission, context: Context) -> None:
        self.service: TomographyService | None = None
        """Decides; none before there is a tree."""
        self._tree = tree
        self._admission = admission
        self._env = context.env
        self._counters = context.counters
        self._spawn = context.spawn
        self._slots = strangers_room(context.env, context.counters)
        self._allowances = Allowances(context.env.randomness(SECRET), context.env.elapsed())
        self._links: dict[PublicKey, _Broker] = {}  # the newest of each
        self._largest = 0
        self._touched = trio.Event()

    @property
    def connected(self) -> int:
        """How many brokers' links are open."""
        return len(self._links)

    def status(self) -> dict[str, int]:
        """Describe what is held."""
        service = self.service
        if service is None:
            return {"statements_held": 0, "sources_bogus": 0, "watches": 0, "largest_k": 0}
        return {
            "statements_held": service.gathered.rows,
            "sources_bogus": service.gathered.bogus,
            "watches": service.watches,
            "largest_k": service.largest.at(self._env.now()),
        }

    def follow(self, tree: BrokerTree) -> None:
        """Tell a newer tree to who may have an older one, and serve no more who is not in it."""
        for link in self._links.values():
            if tree.version > link.tree:
                link.tree = tree.version
                link.writer.post(NewTree(tree.signed))
            if link.key not in tree.brokers:
                link.writer.scope.deadline = trio.current_time() + ADVANCE_AFTER
        self._touched.set()

    async def run(self) -> None:
        """Tell watches what changed, and brokers a larger k, until cancelled."""
        while True:
            self._touched = trio.Event()
            due = self.service.deadline() if self.service is not None else float("inf")
            with trio.move_on_after(max(0.0, min(due - self._env.now(), 3600.0))):
                await self._touched.wait()
            await trio.sleep(ADVANCE_AFTER)
            self._advance()

    async def serve(self, channel: Channel[ToService]) -> None:
        """Serve one link until it ends; raises a `PeerError` or `TransportError`."""
        key, tree = channel.peer, self._tree.newest
        if key is None:
            with self._slots.place(), trio.move_on_after(ASK_WITHIN):
                await self._serve_stranger(channel)
        elif tree is None or key not in tree.brokers:
            self._counters.add("refused_unlisted")
        else:
            await self._serve_broker(channel, key, tree.version)

    async def _serve_stranger(self, channel: Channel[ToService]) -> None:
        while batch := await channel.receive():
            for frame in batch:
                if isinstance(frame, Ping):
                    await channel.send(Pong())
                elif isinstance(frame, Ask) and not frame.is_watch:
                    await channel.send(self._answer_stranger(frame))
                else:
                    raise DecodeError("somebody without a name says what brokers say")

    def _answer_stranger(self, frame: Ask) -> AskReply:
        content = question_digest(frame.question)
        if (refused := self._admission.refusal(frame.stamp, content)) is not None:
            self._counters.add("questions_unpaid" if refused == "stamp" else "questions_refused")
            return AskReply(frame.number, None, refused, self._admission.difficulty)
        return self._answer(frame, self._told)

    def _told(self, service: TomographyService, frame: Ask) -> Signed:
        self._allowances.take(frame.question.filter.topic, self._env.elapsed())
        return service.tell(frame.question, self._env.now())

    async def _serve_broker(self, channel: Channel[ToService], key: PublicKey, version: int) -> None:
        writer = Writer(channel, self._spawn)
        link = _Broker(key, writer, version, self._env.elapsed())
        self._leave(key)
        self._tell_largest()
        writer.post(LargestK(self._largest))
        self._links[key] = link
        try:
            with writer.scope as scope:
                while True:
                    if self._is_listed(key):
                        scope.deadline = trio.current_time() + IDLE
                    if not (batch := await channel.receive()):
                        return
                    for frame in batch:
                        await self._take(link, frame)
        finally:
            writer.scope.cancel()
            if self._links.get(key) is link:
                self._leave(key)

    async def _take(self, link: _Broker, frame: ToService) -> None:
        service = self.service
        if isinstance(frame, StateFilters | Ask):
            amount = float(len(frame.statements)) if isinstance(frame, StateFilters) else 1.0
            if wait := link.bucket.owe(self._env.elapsed(), amount):
                await trio.sleep(wait)
        if isinstance(frame, Ping):
            link.writer.post(Pong())
        elif isinstance(frame, NewTree):
            await self._tree.take(frame.tree)
        elif isinstance(frame, StateFilters):
            if frame.is_anew and service is not None:
                service.forget(link.key)
            for signed in frame.statements:
                link.stated += 1
                self._hear(link, signed)
            self._touched.set()
        elif isinstance(frame, Ask):
            link.writer.post(self._answer(frame, lambda service, one: self._asked(service, link.key, one)))
            self._touched.set()
        elif isinstance(frame, Unwatch) and service is not None:
            service.unwatch(link.key, frame.number)

    def _hear(self, link: _Broker, signed: Signed) -> None:
        try:
            if self.service is None:
                raise Refusal("unknown")
            self.service.hear(link.key, signed, self._env.now())
        except Refusal as refusal:
            self._counters.add(counter_of(refusal.reason))
            link.writer.post(StatementRefused(link.stated, cast(NoAnswerReason, refusal.reason)))
        else:
            self._counters.add("statements_taken")

    def _asked(self, service: TomographyService, asker: PublicKey, frame: Ask) -> Signed:
        now = self._env.now()
        if frame.is_watch:
            return service.watch(asker, frame.number, frame.question, now)
        return service.ask(asker, frame.question, now)

    def _answer(self, frame: Ask, decide: Callable[[TomographyService, Ask], Signed]) -> AskReply:
        difficulty = self._admission.difficulty
        try:
            if self.service is None:
                raise Refusal("no-way")
            signed = decide(self.service, frame)
        except Refusal as refusal:
            self._counters.add("questions_refused")
            return AskReply(frame.number, None, cast(NoAnswerReason, refusal.reason), difficulty)
        self._counters.add("questions_answered")
        self._tell_largest()
        return AskReply(frame.number, signed, None, difficulty)

    def _advance(self) -> None:
        if self.service is None:
            return
        for news in self.service.advance(self._env.now()):
            with suppress(KeyError):
                self._links[news.asker].writer.post(AskReply(news.number, news.answer, None, 0))
                self._counters.add("news_told")
        self._tell_largest()

    def _tell_largest(self) -> None:
        largest = self._largest_now()
        if largest != self._largest:
            self._largest = largest
            for link in self._links.values():
                link.writer.post(LargestK(largest))

    def _largest_now(self) -> int:
        return self.service.largest.at(self._env.now()) if self.service is not None else 1

    def _leave(self, key: PublicKey) -> None:
        if (link := self._links.pop(key, None)) is not None:
            link.writer.scope.cancel()
            if self.service is not None:
                self.service.leave(key)

    def _is_listed(self, key: PublicKey) -> bool:
        return self._tree.newest is not None and key in self._tree.newest.brokers
