"""The two behaviours of the overlay, as published and hardened, each one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Root(Enum):
    """What stands at the root of a subscription's tree."""

    LISTED = "listed"  # the subscriber's own relay, which the roster names (VB §4.2)
    HOST = "host"  # a relay that keeps the subscriber's box


@dataclass(frozen=True)
class Profile:
    """Parameters of planner and router; the code is the same for all profiles."""

    name: str
    root: Root
    depth: int  # levels of relays under the root
    edge_elements: bool  # filters hold H(token, relay, previous hop) instead of H(token)
    trail_alone_drops: bool  # a hit in the trail drops, as published, false positives included
    origins: int  # random relays that a publication is dropped at
    trees: int  # of a subscription, each over all relays: a message climbs each of them
    late_routes: bool  # a drop waits at its origin for leases that are on their way
    detours: bool  # when a next hop is lost, a message enters its tree again at a random relay


PAPER = Profile(
    "paper",
    Root.LISTED,
    depth=3,
    edge_elements=False,
    trail_alone_drops=True,
    origins=1,
    trees=1,
    late_routes=False,
    detours=False,
)
HARDENED = Profile(
    "hardened",
    Root.HOST,
    depth=2,
    edge_elements=True,
    trail_alone_drops=False,
    origins=2,
    trees=1,
    late_routes=True,
    detours=True,
)
PROFILES = {profile.name: profile for profile in (PAPER, HARDENED)}
MAX_TREES = 4  # each costs as much traffic as the first
MAX_DEPTH = 6  # beyond it the delay outweighs what depth hides; a trail holds 32
