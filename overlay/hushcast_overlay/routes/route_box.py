"""A route's box: what an owner knows of it and of its hosts."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushcast_overlay.routes.host_link import HostLink
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.host_list import HostList
from hushcast_runtime.change_signal import ChangeSignal


@dataclass(eq=False)
class AtHost:
    """What one host has of a box, as far as its owner knows."""

    held: int = -1
    """The last day for which it may hold something, on disk before it is asked to; -1 if nothing waits."""
    confirmed: int = -1
    """The last day for which it has confirmed that it does; on disk."""
    seen: int = -1
    """The last day on which its owner was there; on disk."""
    gave_way: int = 0
    """How many messages it said gave way, when it said so last."""
    elements: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    """What it has confirmed that it holds, by lease, in this life of the daemon."""
    refuses: bool = False
    """Whether it refused what it was asked last."""
    has_forgotten: bool = False
    """Whether it has heard that its owner is done with the box."""
    due: float = 0.0
    """Unix time from which on it is asked for what came after its use; on disk."""
    address: Address | None = None
    """Where it is reached, by its own word or the last roster that listed it; on disk."""
    listed: Relay | None = None
    """What the roster says of it by which it was looked for last."""
    answered: dict[int, bool] = field(default_factory=dict)
    """Whether it answered on a day, of those on which it was tried in this life of the daemon: the last."""
    sought: int = -1
    """The last day for which it asks keepers for what the box lacks; -1 for none. On disk."""
    since: int = -1
    """The first day for which it asks keepers, perhaps not for all of it; -1 for none. On disk."""
    lacking: int = -1
    """The first day of which the other host is to bring what this one did not; -1 for none. On disk."""
    link: HostLink | None = None
    """The link to it, once it has told how the box stands; at once where it can have nothing of it."""
    leaving: HostLink | None = None
    """The link over which trunks are left with it."""

    @property
    def is_new(self) -> bool:
        """Whether it was never asked for anything."""
        return self.held < 0 and self.confirmed < 0

    def is_to_bring(self, day: int) -> bool:
        """Tell whether it was to ask keepers for all of a day: of its first one it may not have been."""
        return 0 <= self.since < day <= self.sought

    def tried(self, day: int, has_answered: bool) -> None:
        """Note on a day that it has answered, or has not."""
        self.answered = {day: has_answered or self.answered.get(day, False)}


@dataclass(eq=False)
class RouteBox:
    """The box in which messages arrive for a route, at whichever of its hosts."""

    seed: Seed
    hosts: HostList
    whole_from: int | None = None
    """The first day of which its hosts were asked for all that was published; `None` before any. On disk."""
    at: dict[RelayId, AtHost] = field(default_factory=dict)
    """By host."""
    is_ended: bool = False
    """Whether its route has ended, so that it is but to be forgotten."""
    attended: set[RelayId] = field(default_factory=set)
    """The hosts that a task attends to."""
    changed: ChangeSignal = field(default_factory=ChangeSignal)
    """Which hosts are wanted may have changed."""

    retry: ChangeSignal = field(default_factory=ChangeSignal)
    """Hosts that were not reached are to be tried at once."""

    @property
    def key(self) -> bytes:
        """Its name at its hosts (32 bytes)."""
        return self.seed.public()

    def host(self, relay: RelayId) -> AtHost:
        """Return what a host has of it."""
        return self.at.setdefault(relay, AtHost())

    def link(self, relay: RelayId) -> HostLink | None:
        """Return the link to a host, if there is one."""
        known = self.at.get(relay)
        return known.link if known is not None else None

    def is_sought(self, day: int) -> bool:
        """Tell whether a host asks keepers for what is of a day."""
        return any(known.sought >= day for known in self.at.values())

    def lacking_elsewhere(self, relay: RelayId) -> list[AtHost]:
        """Return those of its other hosts that were found to lack messages, which this one is to bring."""
        return [known for other, known in self.at.items() if other != relay and known.lacking >= 0]

    def answers(self, day: int) -> dict[RelayId, bool]:
        """Return whether hosts answered on a day, of those that were tried on it."""
        return {relay: known.answered[day] for relay, known in self.at.items() if day in known.answered}

    @property
    def is_there(self) -> bool:
        """Whether the host in use answers."""
        return self.link(self.hosts.current) is not None
