"""Answers to whoever runs a gateway: its clients, what is retained, who was refused what; and what is done.

Thousands of lines are told in pieces, with a turn for everybody else between two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import msgspec
import trio

from hushcast_gateway.broker_state import BrokerState
from hushcast_gateway.clients.client_stream import ClientStream
from hushcast_gateway.operators.questions import (
    ClientLine,
    ClientsQuestion,
    DelayedLine,
    DelayedQuestion,
    Done,
    Failed,
    KickRequest,
    Line,
    PurgeRequest,
    Question,
    RefusedLine,
    RefusedQuestion,
    RetainedLine,
    RetainedQuestion,
)
from hushcast_protocol.mqtt.kept.retained_messages import RetainedDeletion
from hushcast_protocol.mqtt.mqtt_session import MqttSession
from hushcast_protocol.mqtt.topics.topic_filters import is_filter
from hushcast_runtime.wording import listed

PIECE = 32  # lines, or deletions, between two turns of everybody else; a deletion takes some 30 µs
NO_FILTER = "this is no topic filter: write levels, `+` for any one, and `#` at the end for all that follow"


class OperatorAnswers:
    """Answers one question after the other."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._broker = state.broker
        self._operator = state.broker.operator

    async def answer(self, asked: bytes) -> AsyncIterator[bytes]:
        """Yield the lines of an answer; what is no question is told so."""
        encode = msgspec.json.Encoder().encode
        try:
            question: Question = msgspec.json.decode(asked, type=Question)
        except (msgspec.MsgspecError, RecursionError):
            yield encode(Failed(why="the gateway does not know this question: is it of another version?"))
            return
        count = 0
        async for line in self._lines(question):
            yield encode(line)
            count += 1
            if count % PIECE == 0:
                await trio.lowlevel.checkpoint()

    async def _lines(self, question: Question) -> AsyncIterator[Line]:
        match question:
            case ClientsQuestion():
                lines = self._clients(question)
            case KickRequest():
                lines = self._kick(question)
            case RetainedQuestion():
                lines = self._retained(question)
            case PurgeRequest():
                lines = self._purge(question)
            case RefusedQuestion():
                lines = self._refused()
            case DelayedQuestion():
                lines = self._delayed()
        async for line in lines:
            yield line

    async def _clients(self, question: ClientsQuestion) -> AsyncIterator[Line]:
        count = 0
        for session in self._operator.sessions():
            if question.user in (None, session.user):
                yield _client(session)
                count += 1
        yield Done(count=count)

    async def _kick(self, question: KickRequest) -> AsyncIterator[Line]:
        found = [
            one
            for one in self._operator.sessions()
            if one.client_id == question.client and question.user in (None, one.user)
        ]
        if len(found) > 1:
            users = listed(sorted(one.user or "''" for one in found))
            yield Failed(why=f"several users have a client of this name: give --user, one of {users}")
        elif not found:
            yield Failed(why="there is no such client: `hushcast gateway clients` lists all")
        elif found[0].link is None and not question.forget:
            yield Failed(why="it is not connected: its session waits for it, and --forget ends that")
        else:
            before = self._broker.ledger.made
            self._operator.kick(found[0], question.forget, self._state.env.now())
            await self._stored(before)
            yield Done(count=1)

    async def _retained(self, question: RetainedQuestion) -> AsyncIterator[Line]:
        if not is_filter(question.filter):
            yield Failed(why=NO_FILTER)
            return
        count = 0
        for found in self._operator.retained(question.filter):
            if found is None:
                await trio.lowlevel.checkpoint()
                continue
            message, user, travels = found
            yield RetainedLine(
                topic=message.topic,
                bytes=len(message.payload),
                qos=message.qos,
                user=user,
                travels=travels,
                expires=message.expires,
            )
            count += 1
        kept: Counter[str] = Counter()
        for _ in self._operator.count_history(question.filter, kept):
            await trio.lowlevel.checkpoint()
        yield Done(count=count, histories=kept.total())

    async def _purge(self, question: PurgeRequest) -> AsyncIterator[Line]:
        if not is_filter(question.filter):
            yield Failed(why=NO_FILTER)
            return
        before = self._broker.ledger.made
        kept: Counter[str] = Counter()
        for _ in self._operator.delete_history(question.filter, kept):
            self._state.changed()
            await trio.lowlevel.checkpoint()
        ends: Counter[RetainedDeletion] = Counter()
        for step, found in enumerate(self._operator.retained(question.filter), 1):
            if found is not None:
                ends[self._operator.delete_retained(found.message.topic, self._state.env.now())] += 1
                self._state.changed()
            if found is None or step % PIECE == 0:
                await trio.lowlevel.checkpoint()
        await self._stored(before)
        refused = ends.pop(RetainedDeletion.REFUSED, 0)
        ends.pop(RetainedDeletion.GONE, 0)
        yield Done(
            count=ends.total(),
            histories=kept.total(),
            elsewhere=ends[RetainedDeletion.HERE_ALONE],
            travelling=ends[RetainedDeletion.TRAVELS],
            refused=refused,
        )

    async def _refused(self) -> AsyncIterator[Line]:
        found = self._broker.refusals.named(self._state.env.now())
        for one in found:
            yield RefusedLine(
                thing=one.cause.thing.value,
                cause=one.cause.name.lower(),
                because=one.cause.because,
                user=one.user,
                client=one.client_id,
                subject=one.subject,
                count=one.count,
                began=one.began,
                last=one.last,
            )
        yield Done(count=len(found))

    async def _delayed(self) -> AsyncIterator[Line]:
        waiting = self._broker.delayed.waiting()
        for one in waiting:
            yield DelayedLine(
                topic=one.message.topic,
                due=one.due,
                bytes=len(one.message.payload),
                qos=one.message.qos,
                user=one.sender.user,
                client=one.sender.client_id,
            )
        yield Done(count=len(waiting))

    async def _stored(self, before: int) -> None:
        """Wait until all is on disk that was changed since."""
        stored = trio.Event()
        self._broker.ledger.once_stored(before, stored.set)
        self._state.changed()
        await stored.wait()


def _client(session: MqttSession) -> ClientLine:
    outlet = None if session.link is None else session.link.outlet
    stream = outlet if isinstance(outlet, ClientStream) else None
    return ClientLine(
        user=session.user,
        client=session.client_id,
        since=None if stream is None else stream.since,
        until=session.ends,
        packets_in=None if stream is None else stream.packets_in,
        bytes_in=None if stream is None else stream.bytes_in,
        packets_out=None if stream is None else stream.packets_out,
        bytes_out=None if stream is None else stream.bytes_out,
        filters=len(session.filters),
        queue=len(session.queue),
        queue_bytes=session.queue_bytes,
        inflight=len(session.inflight),
    )
