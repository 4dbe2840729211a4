"""What the daemon answers to each request of an application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from hushcast.control_messages import (
    AcknowledgeAnswer,
    AcknowledgeRequest,
    Answer,
    AwaitRequest,
    CancelAnswer,
    CancelRequest,
    CoverageAnswer,
    CoverageRequest,
    DoctorAnswer,
    DoctorRequest,
    Finding,
    OutboxAnswer,
    OutboxRequest,
    PublishAnswer,
    PublishRequest,
    StatusAnswer,
    StatusRequest,
    SubscriptionsAnswer,
    SubscriptionsRequest,
    TopicUnsubscribeRequest,
    UnsubscribeAnswer,
)
from hushcast.device_messages import DeviceRequest
from hushcast_local.devices.device_requests import answer_device_request
from hushcast_local.outbox import OutboxPublication, ReceiptedPublication
from hushcast_local.service import Service
from hushcast_local.subscription_names import check_unlisted, held_interest, open_or_held
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import check_tags
from hushcast_protocol.content.topics import parse_values

Question = (
    PublishRequest
    | AwaitRequest
    | OutboxRequest
    | CancelRequest
    | AcknowledgeRequest
    | TopicUnsubscribeRequest
    | SubscriptionsRequest
    | CoverageRequest
    | StatusRequest
    | DoctorRequest
    | DeviceRequest
)
"""All requests but `TopicSubscribeRequest`, whose answers do not end."""


class DaemonNotUp(Refusal):
    """The daemon is not up yet."""


class ApplicationRequests:
    """One daemon as its applications see it; until it is up it answers `status` and `doctor` only."""

    def __init__(
        self, status: Callable[[], dict[str, Any]], examine: Callable[[], Awaitable[list[Finding]]]
    ) -> None:
        self._status = status
        self._examine = examine
        self._service: Service | None = None

    def open(self, service: Service) -> None:
        """Serve everything from now on."""
        self._service = service

    @property
    def service(self) -> Service:
        """What carries requests out; raises `DaemonNotUp` until the daemon is up."""
        if self._service is None:
            raise DaemonNotUp("the daemon is starting: `hushcast status` shows how far it is")
        return self._service

    async def answer(self, request: Question) -> Answer:
        """Carry a request out and return the answer; raise `Refusal` or `UsageError`."""
        if isinstance(request, PublishRequest):
            return await self._published(request)
        number = request.request
        if isinstance(request, StatusRequest):
            return StatusAnswer(self._status(), request=number)
        if isinstance(request, DoctorRequest):
            return DoctorAnswer(await self._examine(), request=number)
        service = self.service
        if isinstance(request, SubscriptionsRequest):
            return SubscriptionsAnswer(service.subscriptions(), request=number)
        if isinstance(request, OutboxRequest):
            return OutboxAnswer(service.outbox(), request=number)
        if isinstance(request, AwaitRequest):
            taken = await service.taken(request.token)
            return PublishAnswer(taken.id.hex(), taken.topic, request=number)
        if isinstance(request, CancelRequest):
            return await _cancelled(service, request)
        if isinstance(request, AcknowledgeRequest | CoverageRequest | TopicUnsubscribeRequest):
            return await _about_topic(service, request)
        return await answer_device_request(service.devices, request)

    async def _published(self, request: PublishRequest) -> PublishAnswer:
        topic = open_or_held(self.service.devices.held, request.topic, request.open)
        content = Content(request.payload, parse_values(topic, request.set))
        waits, tags = request.tell == "accepted", check_tags(request.tags or ())
        publication = await self.service.enqueue(
            topic,
            content,
            _author(request),
            waits or request.at_once,
            request.token,
            tags,
            request.next_round,
        )
        if waits:
            await publication.taken()
        return PublishAnswer(
            publication.id.hex(),
            topic.name,
            request.tell,
            _outlook(publication),
            request=request.request,
        )


def _outlook(publication: OutboxPublication | ReceiptedPublication) -> str | msgspec.UnsetType:
    """Return what is said under cover in the place of waiting for a receipt."""
    if not isinstance(publication, OutboxPublication) or not publication.is_covered:
        return msgspec.UNSET
    return publication.reason or msgspec.UNSET


async def _about_topic(
    service: Service, request: AcknowledgeRequest | CoverageRequest | TopicUnsubscribeRequest
) -> Answer:
    held = service.devices.held
    topic, predicate = held_interest(held, request.topic, request.where)
    if not service.subscriber.find(topic, predicate):
        check_unlisted(held, topic)
    if isinstance(request, CoverageRequest):
        described = await service.coverage(topic, predicate, request.losses)
        if not described:
            raise Refusal("there is no such subscription: `hushcast subscriptions` lists them")
        return CoverageAnswer(described, request=request.request)
    if isinstance(request, AcknowledgeRequest):
        await service.acknowledge(topic, request.cursor, predicate)
        return AcknowledgeAnswer(topic.name, request.cursor, request=request.request)
    return UnsubscribeAnswer(topic.name, await service.unsubscribe(topic, predicate), request=request.request)


async def _cancelled(service: Service, request: CancelRequest) -> CancelAnswer:
    message_id = _message_id(request.id)
    topic = await service.cancel(message_id)
    if topic is None:
        raise Refusal(
            "no such message is in the outbox: the network has taken it over, or it never was there"
        )
    return CancelAnswer(message_id.hex(), topic, request=request.request)


def _message_id(written: str) -> bytes:
    try:
        return bytes.fromhex(written)
    except ValueError:
        raise UsageError("an id has 64 hexadecimal digits: `hushcast outbox` lists them") from None


def _author(request: PublishRequest) -> Seed | None:
    if request.author is None:
        return None
    if len(request.author) != Seed.LENGTH:
        raise UsageError(f"an author's key has {Seed.LENGTH} bytes: `hushcast admin key new` makes one")
    return Seed(request.author)
