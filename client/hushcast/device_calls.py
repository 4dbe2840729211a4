"""What a program asks a daemon about devices: its links, to be carried to another one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import anyio.to_thread

from hushcast import device_messages
from hushcast.control_messages import Request

if TYPE_CHECKING:  # keys load what seals and signs, which few calls need
    from hushcast.keys import Author
    from hushcast_protocol.devices.carried_links import CarriedLink

AnswerT = TypeVar("AnswerT")


class Asking(Protocol):
    """A daemon that answers one request with one answer."""

    async def ask(self, request: Request, kind: type[AnswerT], timeout: float | None = None) -> AnswerT:
        """Return the answer, of this kind."""


class Imported(NamedTuple):
    """What became of an import."""

    planned: int
    """Subscriptions that will begin."""
    held: int
    """Those that the daemon had."""
    within: float
    """Seconds within which the last one begins."""


@dataclass(frozen=True)
class Device:
    """A device of one person."""

    name: str
    """What its person calls it."""
    fingerprint: str
    """32 hexadecimal digits, of its key."""
    is_this: bool
    """Whether it is the one that was asked."""
    is_removed: bool
    """Whether it was removed."""
    heard: float | None
    """Unix seconds of the epoch in which it was heard last, since this daemon started."""


@dataclass(frozen=True)
class Invitation:
    """What lets one device join."""

    link: str = field(repr=False)
    """For the other device alone."""
    expires: float
    """Unix seconds."""


class DeviceCalls:
    """The part of `Daemon` that is about devices."""

    async def export_links(self: Asking, password: str) -> bytes:
        """Return the links of all subscriptions, sealed under a password, with conditions and terms.

        Whoever has both reads all private topics in it. The password has 8 characters at least; a second and
        256 MiB are spent, so that guesses are dear.
        """
        from hushcast.keys import sealed_links
        from hushcast_protocol.devices.carried_links import CarriedLink

        told = await self.ask(device_messages.LinksRequest(), device_messages.LinksAnswer)
        links = [CarriedLink(one["link"], one["where"], one["terms"]) for one in told.links]
        return await anyio.to_thread.run_sync(sealed_links, links, password)

    async def import_links(
        self: Asking, sealed: bytes, password: str, *, within: float | None = None
    ) -> Imported:
        """Subscribe to all links of an export, each at a moment drawn `within` so many seconds.

        Without `within` within twelve epochs, as subscriptions that begin together show that they are one
        daemon's; with 0 at once. On return it is on the daemon's disk. Raises `UsageError` where the password
        is another one.
        """
        from hushcast_protocol.devices.carried_links import open_links

        links = await anyio.to_thread.run_sync(open_links, sealed, password)
        planned, held, last = 0, 0, 0.0
        for begin in range(0, len(links), device_messages.MAX_CARRIED):
            part = [_carried(link) for link in links[begin : begin + device_messages.MAX_CARRIED]]
            request = device_messages.LinksImportRequest(part, within)
            told = await self.ask(request, device_messages.LinksImportAnswer)
            planned, held, last = planned + told.planned, held + told.held, told.within
        return Imported(planned, held, last)

    async def invite_device(self: Asking, name: str = "device") -> Invitation:
        """Return a link by which one device joins those that share with this one, within ten minutes.

        From then on they share subscriptions and what was read. `name` is this device's, if it has none yet.
        """
        told = await self.ask(device_messages.DeviceInviteRequest(name), device_messages.DeviceInviteAnswer)
        return Invitation(told.link, told.expires)

    async def join_devices(
        self: Asking, link: str, name: str = "device", *, timeout: float | None = None
    ) -> list[Device]:
        """Join the devices that a link invites to, as `name`; return all of them.

        Raises `Refusal` where nobody has answered once the link is too old.
        """
        request = device_messages.DeviceJoinRequest(link, name)
        limit = math.inf if timeout is None else timeout
        return _devices(await self.ask(request, device_messages.DevicesAnswer, limit))

    async def devices(self: Asking) -> list[Device]:
        """Return the devices that share with this one, itself and removed ones included."""
        return _devices(await self.ask(device_messages.DevicesRequest(), device_messages.DevicesAnswer))

    async def remove_device(self: Asking, device: str) -> list[Device]:
        """Remove a device by its name, or the beginning of its fingerprint; return all that are known.

        The others go on under a new secret: it learns nothing that they say later. Raises `UsageError`.
        """
        request = device_messages.DeviceRemoveRequest(device)
        return _devices(await self.ask(request, device_messages.DevicesAnswer))

    async def leave_devices(self: Asking) -> None:
        """Share nothing any more, and forget what was shared; what is subscribed to here stays.

        Remove this device on another one, too: its disk may have been copied.
        """
        await self.ask(device_messages.DeviceLeaveRequest(), device_messages.DevicesAnswer)

    async def share_author(self: Asking, name: str, author: Author | None) -> None:
        """Share an author's key with all devices under a name; with `None`, share it no more."""
        seed = None if author is None else author.seed.reveal()
        await self.ask(device_messages.AuthorShareRequest(name, seed), device_messages.AuthorsAnswer)

    async def shared_authors(self: Asking) -> dict[str, str]:
        """Return the fingerprints of the authors whose keys the devices share, by their names."""
        told = await self.ask(device_messages.AuthorsRequest(), device_messages.AuthorsAnswer)
        return {one["name"]: one["fingerprint"] for one in told.authors}

    async def shared_author(self: Asking, name: str) -> Author:
        """Return the author whose key is shared under a name; raise `Refusal` where there is none."""
        from hushcast.keys import Author
        from hushcast_protocol.base.secrets import Seed

        told = await self.ask(device_messages.AuthorsRequest(name), device_messages.AuthorsAnswer)
        assert told.key is not None
        return Author(Seed(told.key))


def _devices(told: device_messages.DevicesAnswer) -> list[Device]:
    return [
        Device(one["name"], one["fingerprint"], one["this"], one["removed"], one["heard"])
        for one in told.devices
    ]


def _carried(link: CarriedLink) -> device_messages.CarriedSubscription:
    return device_messages.CarriedSubscription(link.link, link.where, link.terms)
