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


Title = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
"""What a person calls a device."""


class DevicesRequest(StrictRequest, frozen=True, tag_field="op", tag="devices"):
    """List the devices that share with this one."""


class DeviceInviteRequest(StrictRequest, frozen=True, tag_field="op", tag="device-invite"):
    """Make a link by which one device joins within ten minutes; `title` is this one's, if it has none."""

    title: Title


class DeviceJoinRequest(StrictRequest, frozen=True, tag_field="op", tag="device-join"):
    """Join the devices that a link invites to, under a title; answered when the other one has answered."""

    link: str
    title: Title


class DeviceRemoveRequest(StrictRequest, frozen=True, tag_field="op", tag="device-remove"):
    """Remove the device with this title, or whose fingerprint begins so: it learns nothing later."""

    device: str


class DeviceLeaveRequest(StrictRequest, frozen=True, tag_field="op", tag="device-leave"):
    """Share nothing with the others any more, and forget what was shared; what is subscribed to stays."""


class AuthorsRequest(StrictRequest, frozen=True, tag_field="op", tag="device-authors"):
    """List the authors' keys that the devices share; with `title` give that one out."""

    title: Title | None = None


class AuthorShareRequest(StrictRequest, frozen=True, tag_field="op", tag="device-author"):
    """Share an author's key (base64, 32 bytes) under a title, or, without one, share it no more."""

    title: Title
    author: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)] | None = None


class AuthorsAnswer(Told, frozen=True, tag_field="event", tag="device-authors"):
    """The authors, `{"name", "fingerprint"}` each; and the key that was asked for."""

    authors: list[dict[str, Any]]
    key: bytes | None = None


class LinksAnswer(Told, frozen=True, tag_field="event", tag="links"):
    """The links, `{"link", "where", "terms"}` each."""

    links: list[dict[str, Any]]


class LinksImportAnswer(Told, frozen=True, tag_field="event", tag="links-imported"):
    """So many subscriptions will begin, the last after `within` seconds; so many were held before."""

    planned: int
    held: int
    within: float


class DevicesAnswer(Told, frozen=True, tag_field="event", tag="devices"):
    """The devices, `{"name", "fingerprint", "this", "removed", "heard"}` each; also after a change."""

    devices: list[dict[str, Any]]


class DeviceInviteAnswer(Told, frozen=True, tag_field="event", tag="device-invited"):
    """The link, which is good once and until `expires` (Unix seconds)."""

    link: str
    expires: float


DeviceRequest = (
    LinksRequest
    | LinksImportRequest
    | DevicesRequest
    | DeviceInviteRequest
    | DeviceJoinRequest
    | DeviceRemoveRequest
    | DeviceLeaveRequest
    | AuthorsRequest
    | AuthorShareRequest
)
DeviceAnswer = LinksAnswer | LinksImportAnswer | DevicesAnswer | DeviceInviteAnswer | AuthorsAnswer
