"""Hushcast for programs: publish and subscribe through the daemon on this machine.

async with hushcast.connect() as daemon:
    await daemon.publish("weather", "it rains")
    async with daemon.subscribe("weather") as messages:
        async for message in messages:
            print(message.text)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushcast.blocking import BlockingDaemon, BlockingMessages, connect_sync
    from hushcast.carried_link_calls import Imported
    from hushcast.control_messages import Terms
    from hushcast.daemon import Daemon, connect
    from hushcast.descriptions import Finding, Publication, Subscription, Unsent
    from hushcast.device_calls import Device, Invitation
    from hushcast.errors import (
        HushcastError,
        NoDaemon,
        OtherVersion,
        Refusal,
        TimedOut,
        UsageError,
        Waiting,
    )
    from hushcast.events import (
        Coverage,
        Disconnected,
        Event,
        Gap,
        Lost,
        Message,
        Reconnected,
        Unopened,
        Withdrawn,
    )
    from hushcast.keys import Author, new_author, new_link, read_author, read_link, write_link
    from hushcast.messages import Messages
    from hushcast.purposes.keys import (
        Allowed,
        Lock,
        PurposeKeys,
        ReadFor,
        new_lock,
        read_lock,
        read_purpose_keys,
    )

_PUBLIC = {
    "blocking": ("BlockingDaemon", "BlockingMessages", "connect_sync"),
    "daemon": ("Daemon", "connect"),
    "descriptions": ("Finding", "Publication", "Subscription", "Unsent"),
    "carried_link_calls": ("Imported",),
    "device_calls": ("Device", "Invitation"),
    "errors": ("HushcastError", "NoDaemon", "OtherVersion", "Refusal", "TimedOut", "UsageError", "Waiting"),
    "events": (
        *("Coverage", "Disconnected", "Event", "Gap", "Lost", "Message"),
        *("Reconnected", "Unopened", "Withdrawn"),
    ),
    "keys": ("Author", "new_author", "new_link", "read_author", "read_link", "write_link"),
    "messages": ("Messages",),
    "purposes.keys": (
        *("Allowed", "Lock", "PurposeKeys", "ReadFor"),
        *("new_lock", "read_lock", "read_purpose_keys"),
    ),
    "control_messages": ("Terms",),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [
    "Allowed",
    "Author",
    "BlockingDaemon",
    "BlockingMessages",
    "Coverage",
    "Daemon",
    "Device",
    "Disconnected",
    "Event",
    "Finding",
    "Gap",
    "HushcastError",
    "Imported",
    "Invitation",
    "Lock",
    "Lost",
    "Message",
    "Messages",
    "NoDaemon",
    "OtherVersion",
    "Publication",
    "PurposeKeys",
    "ReadFor",
    "Reconnected",
    "Refusal",
    "Subscription",
    "Terms",
    "TimedOut",
    "Unopened",
    "Unsent",
    "UsageError",
    "Waiting",
    "Withdrawn",
    "connect",
    "connect_sync",
    "new_author",
    "new_link",
    "new_lock",
    "read_author",
    "read_link",
    "read_lock",
    "read_purpose_keys",
    "write_link",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for: a program that needs the words alone starts without the rest."""
    if name not in _HOME:
        raise AttributeError(f"module 'hushcast' has no attribute {name!r}")
    return getattr(import_module(f"hushcast.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
