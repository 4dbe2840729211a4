"""The hosts of one box: two relays, drawn when it is made, and used in order.

Nobody drives an owner to a relay of his choice by keeping others away: which of the two is used follows from
which of them answers, and another one is drawn only for one that `GONE_AFTER` days of rosters lack. On a day
that is cut into shards an owner need not hold a roster that would list a host, and asks for none: that would
show whom it has to do with. Such a day counts where the host did not answer at all when it was tried.
Who loses messages comes after the other: so that is no way out of the list, either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from hushcast_protocol.base.wire import RelayId

HOSTS = 2  # of one box; one alone would take nothing in 13 % of the time, where relays come and go
GONE_AFTER = 14  # days whose rosters lack a host before another is drawn for it

Draw = Callable[[list[RelayId], int], list[RelayId]]
"""Draws so many different ones of some relays, or all, uniformly and in random order."""


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A relay on the list, and how long it has been listed by no roster."""

    relay: RelayId
    looked: int
    """The day of the last roster that was looked at: the last that lists it, where `lacking` is 0."""
    lacking: int = 0
    """Days since it was listed last, of those that had a roster."""

    def look(self, is_listed: bool, day: int) -> KnownHost:
        """Return what is known of it with a roster of a day, or with what became of attempts to reach it."""
        if is_listed:
            return KnownHost(self.relay, max(day, self.looked))
        if day <= self.looked:
            return self
        return KnownHost(self.relay, day, self.lacking + 1)


@dataclass(frozen=True, slots=True)
class HostList:
    """The hosts of a box in their order, and which of them is in use."""

    hosts: tuple[KnownHost, ...]
    """One at least; two where there are as many relays."""
    in_use: int = 0
    away_since: float | None = None
    """Unix time of the first attempt to reach the first host that failed, since one worked."""

    @classmethod
    def drawn(cls, relays: Collection[RelayId], day: int, draw: Draw) -> HostList:
        """Draw the list of a new box, uniformly from all relays of a day's roster, of which there is one."""
        return cls(tuple([KnownHost(relay, day) for relay in draw(sorted(relays), HOSTS)]))

    @property
    def relays(self) -> tuple[RelayId, ...]:
        """The hosts, in order."""
        return tuple([host.relay for host in self.hosts])

    @property
    def current(self) -> RelayId:
        """The host in use."""
        return self.hosts[self.in_use].relay

    @property
    def is_over(self) -> bool:
        """Whether another is to be drawn for each of them, once anybody is listed."""
        return all(host.lacking >= GONE_AFTER for host in self.hosts)

    def look(
        self, listed: Collection[RelayId], day: int, draw: Draw, answers: Mapping[RelayId, bool] | None = None
    ) -> HostList:
        """Return the list with a roster of a day: another host for one that rosters have lacked for long.

        On a day that is cut, `answers` tells of hosts that were tried on it whether they answered; others
        that the roster of a shard lacks are nothing known of.
        """
        there = {*listed, *(relay for relay, has_answered in (answers or {}).items() if has_answered)}
        known = {*self.relays} if answers is None else there | answers.keys()
        looked = [host.look(host.relay in there, day) if host.relay in known else host for host in self.hosts]
        staying = [host for host in looked if host.lacking < GONE_AFTER]
        free = sorted(set(listed) - {host.relay for host in looked})
        staying += [KnownHost(relay, day) for relay in draw(free, HOSTS - len(staying))]
        if not staying:
            return replace(self, hosts=tuple(looked))  # nobody is listed who could come after it
        relays = [host.relay for host in staying]
        in_use = relays.index(self.current) if self.current in relays else 0
        is_first = relays[0] == self.hosts[0].relay
        return HostList(tuple(staying), in_use, self.away_since if is_first else None)

    def answered(self, relay: RelayId) -> HostList:
        """Return the list now that a host has answered: the first is used again as soon as it does."""
        return replace(self, in_use=0, away_since=None) if relay == self.hosts[0].relay else self

    def failed(self, relay: RelayId, now: float, patience: float, is_second_there: bool) -> HostList:
        """Return the list now that an attempt to reach a host has failed.

        The second is used once the first has been away for `patience` seconds, and the second answers: where
        it does not, either, it is this daemon that is away.
        """
        if relay != self.hosts[0].relay:
            return self
        since = now if self.away_since is None else self.away_since
        is_left = now - since >= patience and len(self.hosts) > 1 and is_second_there
        return replace(self, in_use=1 if is_left else self.in_use, away_since=since)

    def lost(self, relay: RelayId) -> HostList:
        """Return the list now that a host was found to have lost messages: it becomes the second.

        It stays in use until the other one answers. Where it is the second already, the first is away.
        """
        if relay != self.hosts[0].relay or len(self.hosts) < HOSTS:
            return self
        return HostList(self.hosts[::-1], HOSTS - 1 - self.in_use)

    def needs(self, relay: RelayId, now: float, patience: float) -> bool:
        """Tell whether a host is to be reached: the first always, the second in its place."""
        is_away = self.away_since is not None and now - self.away_since >= patience
        return relay in self.relays[: 2 if is_away else 1] or relay == self.current
