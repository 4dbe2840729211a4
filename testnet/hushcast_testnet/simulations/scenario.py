"""What to simulate, and what comes of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.privacy import Privacy
from hushcast_protocol.overlay.profile import PROFILES, Root
from hushcast_testnet.inventory import CarrierName
from hushcast_testnet.simulations.faults import NO_FAULTS, Faults

CLEAR = Privacy()
EPOCH_SECONDS = 3600
BEGIN = 10_000 * EPOCHS_A_DAY * EPOCH_SECONDS + 2.5 * EPOCH_SECONDS
REPAIRED_AFTER = 2  # epochs after a fault, from which publications count as repaired


THIS_MACHINE = ("seconds", "cpu_seconds", "megabytes")
"""Fields of a result that depend on where it was made."""


@dataclass(frozen=True)
class Scenario:
    """What to simulate."""

    nodes: int
    """Relays; of other carriers daemons that publish, some of which subscribe."""
    subscribers: int
    publications: int
    topics: int = 1
    depth: int | None = None
    profile: str = "hardened"
    origins: int | None = None
    """Relays that each message is dropped at; the profile's unless given."""
    seed: int = 1
    traces: Path | None = None
    faults: Faults = NO_FAULTS
    trees: int = 1
    minutes: float | None = None
    """Virtual minutes over which publications are spread; else they follow closely upon each other.

    With faults and without minutes half of them follow the fault, and half come when it is repaired.
    """
    delay_rosters: float = 0.0
    """Epochs by which the directory delays rosters for some; for the minutes given, and without faults."""
    read_probes: float = 0.0
    """Share of the relays that read probes; with one subscriber a topic, as above."""
    clients: int | None = None
    """Of the overlay: daemons in no roster, of whom each topic's subscribers are drawn.

    With 0 relays subscribe, as under listed roots. Unless given there are half as many as subscriptions, and
    twice as many as subscribe to a topic; as many as do where there is but one.
    """
    carrier: CarrierName = "overlay"
    proxies: int = 2
    """Of the central system, of both roles in turn."""
    edges: int = 3
    """Edge brokers of a network of brokers."""
    terms: AnonymityTerms | None = None
    """Over brokers, what each subscriber asks for; each then wants a cell of a map (`map_interests.py`)."""
    fan_out: int | None = None
    """Children of each broker, in place of `edges`: a tree as high as it takes, and as there are layers."""
    privacy: Privacy = CLEAR
    """What a network of brokers lets them learn."""
    tomography: bool = False
    """Whether brokers state to a tomography service and ask it, so that clients of several count together."""
    zipf: bool = False
    """Messages are of topics by Zipf's law, instead of each topic's in turn."""
    authorities: int = 0
    """Directories that agree on rosters; 0: one alone."""
    shard_size: int = SHARD_SIZE
    """Relays of a shard: where there are 1.41 times as many, authorities cut the network; 0: never."""

    @property
    def origin_count(self) -> int:
        """Relays that each message is dropped at."""
        return self.origins or PROFILES[self.profile].origins

    @property
    def client_count(self) -> int:
        """Daemons of the overlay that no roster lists."""
        if PROFILES[self.profile].root is Root.LISTED:
            return 0
        if self.clients is not None:
            return self.clients
        if self.topics == 1 or self.delay_rosters or self.read_probes:
            return self.subscribers  # who asks which subscriptions are one daemon's needs some that have all
        # Where everybody subscribes to everything there is nothing to find out.
        return max(2 * self.subscribers, self.subscribers * self.topics // 2)


@dataclass(frozen=True)
class SimulationResult:
    """The result; the same scenario gives the same result except for what `THIS_MACHINE` lists."""

    nodes: int
    pairs: int
    delivered: int
    duplicates: int
    transmissions: int
    ideal: int
    virtual_seconds: float
    seconds: float
    receipts: int
    """Publications that a relay, the server or the root gave a receipt for."""
    lost_with_receipt: int
    """Pairs of such publications that were not delivered."""
    gaps_reported: int
    repaired: dict[str, int]
    """`pairs` and those `delivered` of publications two epochs after the fault and later."""
    told: dict[str, Any]
    """Where relays lose messages: what coverage tells the subscribers in the end, in the mean.

    The `share` of origins that reach them, the share `delivered` of probes, how many of the `bad` relays each
    has `found`, and how many `honest` ones each suspects.
    """
    companions: dict[str, Any]
    """What a directory that delays rosters finds (`RosterDelays.found`)."""
    conditions: dict[str, Any]
    """What relays that read probes find (`ProbeReaders.found`)."""
    hidden: dict[str, int]
    """With `terms`: how many `subscriptions` there are in the end, how many are shown `wider`, and for how
    many `nothing` is shown."""

    costs: dict[str, Any] = field(default_factory=dict)
    """On the overlay what daemons hold and fetched in the end (`costs_of`)."""
    cpu_seconds: float = 0.0
    """Of this process in the run."""
    megabytes: float = 0.0
    """The most that this process ever had resident."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)
