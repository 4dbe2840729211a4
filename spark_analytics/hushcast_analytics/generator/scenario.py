"""What is asked of the generator: a network, its subscriptions and publications, for how long."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hushcast_analytics.errors import TracesError
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY
from hushcast_protocol.overlay.host_list import HOSTS
from hushcast_protocol.overlay.profile import PROFILES, Profile, Root

EPOCH_SECONDS = 3600


@dataclass(frozen=True)
class GeneratorScenario:
    """One run; equal values give equal traces, on any number of machines. Raises `TracesError` if impossible.

    | field | meaning |
    |---|---|
    | `nodes` | relays |
    | `subscribers` | subscribers on each topic, drawn for each topic among the clients, or among the relays |
    | `topics`, `publications` | topics, and messages on all of them together, one topic after the other |
    | `epochs` | epochs of an hour; 24 are a day |
    | `profile` | `paper` or `hardened` |
    | `depth`, `origins` | the profile's unless given |
    | `clients` | daemons that no roster lists; unless given so many that each subscribes to two topics in the
    mean, none under `paper` |
    | `authors` | daemons that publish on a topic, drawn for each topic; 0 stands for all daemons |
    | `up`, `down` | mean epochs for which a daemon is there, and away; without `down` all are always there |
    | `hosts` | how many relays the list of each box has; 0 makes trees and messages, whose roots are no
    relays of the network. With hosts what they see is all that is made: no trees, and no messages |
    | `fresh_boxes` | a box, and its hosts, for each day instead of one that stays |
    | `watchers` | relays, the first ones, that are always there, as an adversary's |
    | `kept_away` | these keep owners away from all other hosts |
    """

    nodes: int
    subscribers: int
    topics: int = 1
    publications: int = 0
    epochs: int = 1
    profile: str = "hardened"
    depth: int | None = None
    origins: int | None = None
    clients: int | None = None
    authors: int = 0
    up: float = 48.0
    down: float = 0.0
    hosts: int = 0
    fresh_boxes: bool = False
    watchers: int = 0
    kept_away: bool = False
    seed: int = 1
    run: str = "generated"

    def __post_init__(self) -> None:
        """Refuse what makes no network."""
        if min(self.nodes, self.subscribers, self.topics, self.epochs) < 1 or self.publications < 0:
            raise TracesError("a network has a relay, a subscriber, a topic and an epoch at least")
        if self.listed and self.clients:
            raise TracesError("under the profile paper only relays can subscribe, and there are no clients")
        pool = self.nodes if self.relays_subscribe else self.client_count
        if self.subscribers > pool:
            raise TracesError(
                f"{self.subscribers} subscribers a topic, but only {pool} daemons that may subscribe"
            )
        if self.behaviour.origins > self.nodes:
            raise TracesError(f"{self.behaviour.origins} origins, but only {self.nodes} relays")
        if self.hosts and (self.listed or self.publications):
            raise TracesError("of hosts, what they see of boxes is made alone: no paper, and no publications")
        if self.hosts > HOSTS:
            raise TracesError(f"a box has {HOSTS} hosts at most, not {self.hosts}")
        if not re.fullmatch(r"[\w.-]+", self.run):
            raise TracesError(f"a run is called by letters, digits, dots and dashes, not {self.run!r}")
        if self.up < 1 or self.down < 0:
            raise TracesError(
                "a daemon is up for an epoch at least, on average, and down for no less than none"
            )

    @property
    def behaviour(self) -> Profile:
        """The profile, with depth and origins as asked for."""
        base = PROFILES[self.profile]
        return replace(base, depth=self.depth or base.depth, origins=self.origins or base.origins)

    @property
    def listed(self) -> bool:
        """Whether the roots of trees are listed relays."""
        return PROFILES[self.profile].root is Root.LISTED

    @property
    def client_count(self) -> int:
        """Daemons that no roster lists."""
        if self.clients is None:
            # Where everybody subscribes to everything there is nothing to find out.
            return 0 if self.listed else max(self.subscribers, self.subscribers * self.topics // 2)
        return self.clients

    @property
    def relays_subscribe(self) -> bool:
        """Whether subscribers are relays."""
        return self.client_count == 0

    @property
    def daemons(self) -> int:
        """Relays, numbered from 0, then clients."""
        return self.nodes + self.client_count

    @property
    def seconds(self) -> float:
        """How long the run lasts."""
        return float(self.epochs * EPOCH_SECONDS)

    @property
    def days(self) -> int:
        """Days that the run touches: each has leases of its own."""
        return -(-self.epochs // EPOCHS_A_DAY)
