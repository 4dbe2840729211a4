"""An announcement: what a gateway says by mDNS of a place where it listens, a port and a kind (RFC 6763).

Whoever asks hears as much as it takes to connect: the address is that from which the answer comes. The name
stands for nothing, and is drawn anew at each start.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address

import msgspec

from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_protocol.base.crypto.secrets import Randomness

SERVICE_TYPES = {"tcp": "_mqtt._tcp.local.", "tls": "_secure-mqtt._tcp.local."}
"""By the kind of a listener: what IANA has for MQTT. WebSockets and HTTP have no names of their own."""
ANNOUNCED = b"announced\n"
"""What a responder says once others can find the gateway; anything else is why they cannot."""
_ALL = "0.0.0.0"  # noqa: S104 - what a listener at all addresses says
_NAME_LENGTH = 4  # random bytes: two gateways of a house do not draw the same


class Announcement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of one place."""

    service_type: str
    port: int
    address: str
    """IPv4."""
    name: str


def announcements(
    listeners: Iterable[ListenSection], address: str, randomness: Randomness
) -> list[Announcement]:
    """Return what is said of the listeners that are reached at an address of this machine."""
    return [
        Announcement(
            service_type=SERVICE_TYPES[one.kind],
            port=one.port,
            address=address,
            name=f"mqtt-{randomness(_NAME_LENGTH).hex()}",
        )
        for one in listeners
        if _is_reached(one, address) and one.port is not None
    ]


def problem_of_announcement(address: str, listeners: Iterable[ListenSection]) -> str | None:
    """Return why nothing can be announced at an address; `None` if something can."""
    try:
        IPv4Address(address)
    except ValueError:
        return "give an IPv4 address of this machine, such as 192.168.1.5: its network is told"
    if not any(_is_reached(one, address) for one in listeners):
        return f"nothing listens at {address} that could be announced: add a listener of kind tls there"
    return None


def _is_reached(listener: ListenSection, address: str) -> bool:
    return listener.kind in SERVICE_TYPES and listener.host in (address, _ALL)
