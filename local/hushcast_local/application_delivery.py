"""Delivery: a subscription's messages on their way to one application, as many as it allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import trio
from msgspec.structs import asdict

from hushcast.control_messages import (
    Answer,
    CoverageAnswer,
    GapNotice,
    LossNotice,
    MessageNotice,
    ShownNotice,
    SubscribeAnswer,
    TopicSubscribeRequest,
    UnsubscribeAnswer,
    as_text,
)
from hushcast_local.devices.devices import Devices
from hushcast_local.inbox_records import InboxMessage, ReportedGap
from hushcast_local.service import InboxFeed, Service
from hushcast_local.subscription_names import wanted_interest
from hushcast_protocol.content.attributes import as_json
from hushcast_protocol.content.bodies import fingerprint
from hushcast_protocol.content.topics import Interest, Topic

MAX_AT_ONCE = 64  # messages in one piece to an application that sets no window
MAX_PIECE = 256 * 1024  # bytes of payloads in one piece: escaped in JSON they take six times that, and 5 ms
COVERAGE_EVERY = 30.0  # seconds between looks for a change of coverage


class AnswerSender(Protocol):
    """Sends answers to the application, in one piece."""

    async def __call__(self, *answers: Answer) -> None:
        """Return once they are on their way."""


class ApplicationDelivery:
    """One `subscribe` of one application."""

    def __init__(self, request: TopicSubscribeRequest, tell: AnswerSender) -> None:
        self._request = request
        self._tell = tell
        self._feed: InboxFeed | None = None
        self._left = request.window
        self._allowed = trio.Event()

    async def run(self, service: Service) -> None:
        """Subscribe, and tell messages until the subscription ends; raise `Refusal` or `UsageError`."""
        request, terms = self._request, self._request.terms
        held = service.devices.held
        interest = wanted_interest(held, request.topic, request.where, request.open)
        feed = self._feed = await service.subscribe(
            interest, request.since, None if terms is None else asdict(terms), request.past
        )
        topic = interest.topic
        try:
            begun = SubscribeAnswer(topic.name, feed.nodes, feed.by, feed.outlook, request=request.request)
            await self._tell(begun)
            async with trio.open_nursery() as nursery:
                if request.coverage:
                    nursery.start_soon(self._tell_coverage, service, interest)
                await self._pour(feed, topic, service.devices)
                nursery.cancel_scope.cancel()
            await self._tell(UnsubscribeAnswer(topic.name, True, request=request.request))
        finally:
            feed.close()

    def shown(self, shown: ShownNotice) -> None:
        """Note what the application has shown and needs no more, and that more may be sent."""
        if self._feed is None:
            return
        if shown.shown:
            self._feed.shown(shown.shown)
        if shown.acknowledged:
            self._feed.shown(shown.acknowledged, acknowledged=True)
        if self._left is not None and shown.more:
            self._left += shown.more
            self._allowed.set()

    async def _pour(self, feed: InboxFeed, topic: Topic, devices: Devices) -> None:
        await self._tell_losses(feed, topic)
        while (arrivals := await feed.take(await self._room())) or not feed.is_over:
            if not arrivals:
                await self._tell_losses(feed, topic)
                continue
            first = arrivals[0]
            if isinstance(first, ReportedGap):
                await self._tell(GapNotice(topic.name, first.id.hex(), request=self._request.request))
                continue
            await self._tell_losses(feed, topic, first[0] - 1)
            messages = [
                arrival
                for arrival in arrivals
                if not isinstance(arrival, ReportedGap)
                and not (self._request.once and devices.is_read_elsewhere(arrival[1].id))
            ]
            if self._left is not None:
                self._left -= len(messages)
            for piece in _pieces(messages):
                await self._tell(*(_delivered(self._request.request, topic, *one) for one in piece))

    async def _room(self) -> int:
        """Return how many messages may be sent, once any may."""
        while self._left == 0:
            self._allowed = trio.Event()
            await self._allowed.wait()
        return MAX_AT_ONCE if self._left is None else self._left

    async def _tell_losses(self, feed: InboxFeed, topic: Topic, last: int | None = None) -> None:
        """Tell of messages that were removed, up to `last` where messages behind it were taken."""
        if (lost := feed.lost(ahead=last is None)) != 0:
            cursor = feed.position if last is None else last
            await self._tell(LossNotice(topic.name, lost, cursor, request=self._request.request))

    async def _tell_coverage(self, service: Service, interest: Interest) -> None:
        told = None
        while covered := await service.coverage(interest.topic, interest.predicate):
            if covered != told:
                told = covered
                await self._tell(CoverageAnswer(covered, request=self._request.request))
            await trio.sleep(COVERAGE_EVERY)


def _pieces(messages: list[tuple[int, InboxMessage]]) -> Iterator[list[tuple[int, InboxMessage]]]:
    """Cut messages where their payloads would be too long to be written in one step."""
    piece: list[tuple[int, InboxMessage]] = []
    size = 0
    for message in messages:
        if piece and size + len(message[1].payload) > MAX_PIECE:
            yield piece
            piece, size = [], 0
        piece.append(message)
        size += len(message[1].payload)
    if piece:
        yield piece


def _delivered(number: int, topic: Topic, cursor: int, received: InboxMessage) -> MessageNotice:
    text, encoding = as_text(received.payload)
    known = {attribute.name: attribute for attribute in topic.attributes}
    attributes = {name: as_json(known[name], value) for name, value in received.values.items()}
    return MessageNotice(
        topic.name,
        received.id.hex(),
        text,
        encoding,
        round(received.received_at, 3),
        cursor,
        attributes or None,
        fingerprint(received.author) if received.author is not None else None,
        received.past_day,
        request=number,
    )
