"""Figure: planning and sealing one subscription for all relays, against the bare sealed boxes in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

from nacl.bindings import crypto_box_seal

from benchmarks.figures import Effort, Figure, alternate, at_most
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import LeaseSecret, ParcelKey, Seed
from hushcast_protocol.base.roster import GENESIS, Network, Relay, Roster
from hushcast_protocol.overlay import installations
from hushcast_protocol.overlay.host_cards import make_host_card
from hushcast_protocol.overlay.installations import HostRoot, Installation, SealedBranch, seal_down
from hushcast_protocol.overlay.parcels import Parcel
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_protocol.overlay.tree import plan

BOUNDS = {500: 60.0, 10_000: 1200.0}  # milliseconds of CPU by number of nodes
_DAY, _EPOCH = 800, 19_200
_SEALED_BOX = 48  # bytes that a seal adds


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure in CPU time of this process, which other processes disturb least."""
    for nodes, bound in BOUNDS.items():
        roster = _roster(nodes)
        boxes = _sizes(roster)
        cost = alternate(effort.runs, {"ours": partial(_ours, roster), "bare": partial(_bare, boxes)})
        name = f"plan and seal one subscription for {nodes:,} nodes, ms of CPU: at most times"
        yield at_most(name, cost["ours"], "the bound", bound, 1)
        yield at_most(name, cost["ours"], "its sealed boxes alone, by libsodium", cost["bare"], 1.3)


def _roster(nodes: int) -> Roster:
    relays = {}
    for _ in range(nodes):
        relay = os.urandom(32)
        relays[relay] = Relay(relay, onion_address(relay), ParcelKey.draw(os.urandom).public(), _EPOCH)
    return Roster(Network("bench", "hardened", 3600), _EPOCH, GENESIS, bytes(32), relays)


def _subscribe(roster: Roster) -> dict[bytes, SealedBranch]:
    """Do what a daemon does for a subscription by one token, from the roster to the parcels it drops."""
    seed = Seed.draw(os.urandom)
    root, card = HostRoot(seed, seed.public()), make_host_card(seed, seed, onion_address(seed.public()))
    tree = plan(roster.relays, HARDENED.depth, os.urandom(32))
    trunk = os.urandom(16)
    planned = Installation(_DAY, root, tree, trunk, (trunk,), LeaseSecret.draw(os.urandom))
    instructions = {relay: planned.install(HARDENED, relay, card) for relay in tree.parents}
    return seal_down(tree, instructions, roster, _EPOCH, os.urandom)


def _sizes(roster: Roster) -> list[tuple[int, bytes]]:
    """Return the size and the recipient's key of each box in a subscription."""
    boxes: list[tuple[int, bytes]] = []
    seal = installations.seal_parcel  # type: ignore[attr-defined]

    def noting(parcel: Parcel, parcel_key: bytes, *others: Any) -> bytes:
        sealed = seal(parcel, parcel_key, *others)
        boxes.append((len(sealed) - _SEALED_BOX, parcel_key))
        return sealed

    with mock.patch.object(installations, "seal_parcel", noting):
        _subscribe(roster)
    return boxes


def _ours(roster: Roster) -> float:
    began = time.process_time()
    _subscribe(roster)
    return (time.process_time() - began) * 1e3


def _bare(boxes: list[tuple[int, bytes]]) -> float:
    plains = [(bytes(size), key) for size, key in boxes]
    began = time.process_time()
    for plain, key in plains:
        crypto_box_seal(plain, key)
    return (time.process_time() - began) * 1e3
