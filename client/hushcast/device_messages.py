"""What is said over the control socket of links that are carried to another device, and of devices."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from hushcast.message_bases import StrictMessage, StrictRequest, Told

MAX_CARRIED = 32  # links in one request, of 5 KiB at most each: a line holds no more than twice as many

Within = Annotated[float, msgspec.Meta(ge=0, le=7 * 24 * 3600)]
"""Seconds, up to a week."""


class LinksRequest(StrictRequest, frozen=True, tag_field="op", tag="links"):
    """Give out the links of all subscriptions, secrets included, to carry them to another device."""


class CarriedSubscription(StrictMessage, frozen=True):
    """A subscription to begin: the topic's link, the condition, and terms as in `TopicSubscribeRequest`."""

    link: str
    where: str = ""
    terms: dict[str, Any] | None = None


class LinksImportRequest(StrictRequest, frozen=True, tag_field="op", tag="import-links"):
    """Subscribe to all of `links`, each at a moment drawn `within` so many seconds.

    Without `within` the daemon chooses; with 0 it begins all of them at once.
    """

    links: Annotated[list[CarriedSubscription], msgspec.Meta(max_length=MAX_CARRIED)]
    within: Within | None = None


class LinksAnswer(Told, frozen=True, tag_field="event", tag="links"):
    """The links, `{"link", "where", "terms"}` each."""

    links: list[dict[str, Any]]


class LinksImportAnswer(Told, frozen=True, tag_field="event", tag="links-imported"):
    """So many subscriptions will begin, the last after `within` seconds; so many were held before."""

    planned: int
    held: int
    within: float


DeviceRequest = LinksRequest | LinksImportRequest
DeviceAnswer = LinksAnswer | LinksImportAnswer
