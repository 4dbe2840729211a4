"""What a broker that runs tells its operator of the tree: who has which seat, and whom it sees connected."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

import msgspec

from hushcast_brokers.broker.settings import RootSettings
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import MAX_BROKERS, BrokerRole, BrokerTree
from hushcast_runtime.processes.doctors_socket import ask

TREE_SOCKET = "tree.sock"
"""In the state directory: where `hushcast admin broker tree` asks a broker that runs."""

MAX_TOLD = MAX_BROKERS * 512  # bytes; a seat takes 320

Seen = Literal["this", "connected", "away", "not seen"]
"""`not seen`: its link is another broker's."""


class ReportedBroker(msgspec.Struct, frozen=True):
    """A broker's place in the tree."""

    key: str
    role: BrokerRole
    address: str
    parent: str | None
    seen: Seen


class TreeReport(msgspec.Struct, frozen=True):
    """A tree, as one of its brokers sees it."""

    network: str
    version: int | None
    """`None`: it is what the root's configuration lists, which is not signed yet."""
    brokers: list[ReportedBroker]


def tree_told(
    name: str, tree: BrokerTree, own: PublicKey, children: Collection[bytes], parent_is_there: bool
) -> TreeReport:
    """Return what the broker with the key `own` sees; `children` are those whose links are open."""

    def seen(key: PublicKey, parent: PublicKey | None) -> Seen:
        if key == own:
            return "this"
        if parent == own:
            return "connected" if key in children else "away"
        if own in tree.brokers and tree.brokers[own].parent == key:
            return "connected" if parent_is_there else "away"
        return "not seen"

    places = [
        ReportedBroker(
            one.key.hex(),
            one.role,
            one.address,
            one.parent.hex() if one.parent is not None else None,
            seen(one.key, one.parent),
        )
        for one in tree.brokers.values()
    ]
    return TreeReport(name, tree.version, places)


def tree_listed(settings: RootSettings) -> TreeReport:
    """Return the tree that a root which does not run would sign; the root's key is none here."""
    root = ReportedBroker("", "root", "", None, "away")
    places = [
        ReportedBroker(one.key, one.role, one.address, one.parent or "", "away") for one in settings.listed
    ]
    return TreeReport(settings.network.name, None, [root, *places])


async def ask_tree(state: Path) -> TreeReport | None:
    """Return what the broker with this state directory tells; `None` where none answers."""
    try:
        return msgspec.json.decode(await ask(state / TREE_SOCKET, MAX_TOLD), type=TreeReport)
    except msgspec.MsgspecError:
        return None
