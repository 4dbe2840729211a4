"""What a program asks a daemon about the devices that share with it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from hushcast import device_messages
from hushcast.control_messages import Request

if TYPE_CHECKING:  # keys load what seals and signs, which few calls need
    from hushcast.keys import Author

AnswerT = TypeVar("AnswerT")


class Asking(ABC):
    """A daemon that answers one request with one answer."""

    @abstractmethod
    async def ask(self, request: Request, kind: type[AnswerT], timeout: float | None = None) -> AnswerT:
        """Return the answer, of this kind."""


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


class DeviceCalls(Asking):
    """The part of `Daemon` that is about devices."""

    async def invite_device(self, name: str = "device") -> Invitation:
        """Return a link by which one device joins those that share with this one, within ten minutes.

        From then on they share subscriptions and what was read. `name` is this device's, if it has none yet.
        """
        told = await self.ask(device_messages.DeviceInviteRequest(name), device_messages.DeviceInviteAnswer)
        return Invitation(told.link, told.expires)

    async def join_devices(
        self, link: str, name: str = "device", *, timeout: float | None = None
    ) -> list[Device]:
        """Join the devices that a link invites to, as `name`; return all of them.

        Raises `Refusal` where nobody has answered once the link is too old.
        """
        request = device_messages.DeviceJoinRequest(link, name)
        limit = math.inf if timeout is None else timeout
        return _devices(await self.ask(request, device_messages.DevicesAnswer, limit))

    async def devices(self) -> list[Device]:
        """Return the devices that share with this one, itself and removed ones included."""
        return _devices(await self.ask(device_messages.DevicesRequest(), device_messages.DevicesAnswer))

    async def remove_device(self, device: str) -> list[Device]:
        """Remove a device by its name, or the beginning of its fingerprint; return all that are known.

        The others go on under a new secret: it learns nothing that they say later. Raises `UsageError`.
        """
        request = device_messages.DeviceRemoveRequest(device)
        return _devices(await self.ask(request, device_messages.DevicesAnswer))

    async def leave_devices(self) -> None:
        """Share nothing any more, and forget what was shared; what is subscribed to here stays.

        Remove this device on another one, too: its disk may have been copied.
        """
        await self.ask(device_messages.DeviceLeaveRequest(), device_messages.DevicesAnswer)

    async def share_author(self, name: str, author: Author | None) -> None:
        """Share an author's key with all devices under a name; with `None`, share it no more."""
        seed = None if author is None else author.seed.reveal()
        await self.ask(device_messages.AuthorShareRequest(name, seed), device_messages.AuthorsAnswer)

    async def shared_authors(self) -> dict[str, str]:
        """Return the fingerprints of the authors whose keys the devices share, by their names."""
        told = await self.ask(device_messages.AuthorsRequest(), device_messages.AuthorsAnswer)
        return {one["name"]: one["fingerprint"] for one in told.authors}

    async def shared_author(self, name: str) -> Author:
        """Return the author whose key is shared under a name; raise `Refusal` where there is none."""
        from hushcast.keys import Author
        from hushcast_protocol.base.crypto.secrets import Seed

        told = await self.ask(device_messages.AuthorsRequest(name), device_messages.AuthorsAnswer)
        assert told.key is not None
        return Author(Seed(told.key))


def _devices(told: device_messages.DevicesAnswer) -> list[Device]:
    return [
        Device(one["name"], one["fingerprint"], one["this"], one["removed"], one["heard"])
        for one in told.devices
    ]
