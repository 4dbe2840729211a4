"""The keys of a node that does not run: which it has, and what follows when a relay's are replaced."""

from __future__ import annotations

from hushcast_brokers.keys import COMMUNITY_KEY
from hushcast_node.settings import NodeSettings
from hushcast_overlay.relay.identity import KEY_FILES, RECORDS_OF_ADDRESS, RECORDS_OF_IDENTITY
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.state_directory import KeyChange, StateKind, check_named, replace_keys, stopped

RELAY_KEYS = {
    "identity": "It is a new relay now, without leases: subscribers install them when a roster lists it, "
    "within two epochs. The old name falls out of the roster three epochs after its last registration.",
    "service": "Its onion address is new: until the next roster other relays do not reach it.",
    "parcel": "Parcels sealed to the old key are lost: subscribers repeat them at the next roster.",
    "filter": "Nothing else changes: the routing table is built anew from the leases.",
}
"""Each key that can be replaced, and what follows."""


def key_files(settings: NodeSettings) -> tuple[str, ...]:
    """Return the names of a node's key files."""
    if settings.role == "relay":
        return KEY_FILES
    return (COMMUNITY_KEY,) if settings.has_communities else ()


def rotate_relay(settings: NodeSettings, kind: StateKind, keys: tuple[str, ...], signs: bool) -> KeyChange:
    """Replace these keys of a relay, all where none are named; raises `UsageError` for a client.

    None of them hands over, whatever `signs` says.
    """
    if settings.role == "client":
        raise UsageError("a client has no keys but its subscriptions': unsubscribe, and subscribe again")
    check_named(kind, keys, tuple(RELAY_KEYS))
    keys = keys or tuple(RELAY_KEYS)
    state = settings.state_path()
    forgotten = [
        *(RECORDS_OF_IDENTITY if "identity" in keys else ()),
        *(RECORDS_OF_ADDRESS if "service" in keys else ()),
    ]
    with stopped(state, kind.known):
        aside = replace_keys(state, [f"{key}.key" for key in keys], forgotten, system_environment().now())
    # A new relay is new in all.
    follows = tuple(RELAY_KEYS[key] for key in keys if "identity" not in keys or key == "identity")
    return KeyChange(keys, aside, follows)
