"""Links that a program carries from one daemon to another: sealed, and opened, in a thread of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import anyio.to_thread

from hushcast import device_messages
from hushcast.device_calls import Asking

if TYPE_CHECKING:  # keys load what seals and signs, which few calls need
    from hushcast_protocol.devices.carried_links import CarriedLink


class Imported(NamedTuple):
    """What became of an import."""

    planned: int
    """Subscriptions that will begin."""
    held: int
    """Those that the daemon had."""
    within: float
    """Seconds within which the last one begins."""


class CarriedLinkCalls(Asking):
    """The part of `Daemon` that is about links in a file."""

    async def export_links(self, password: str) -> bytes:
        """Return the links of all subscriptions, sealed under a password, with conditions and terms.

        Whoever has both reads all private topics in it. The password has 8 characters at least; a second and
        256 MiB are spent, so that guesses are dear.
        """
        from hushcast.keys import sealed_links
        from hushcast_protocol.devices.carried_links import CarriedLink

        told = await self.ask(device_messages.LinksRequest(), device_messages.LinksAnswer)
        links = [CarriedLink(one["link"], one["where"], one["terms"]) for one in told.links]
        return await anyio.to_thread.run_sync(sealed_links, links, password)

    async def import_links(self, sealed: bytes, password: str, *, within: float | None = None) -> Imported:
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


def _carried(link: CarriedLink) -> device_messages.CarriedSubscription:
    return device_messages.CarriedSubscription(link.link, link.where, link.terms)
