"""Hosts of boxes: what a host sees of an owner that comes and goes, epoch by epoch.

Which hosts a box has, and which of them is used, is decided by the daemons' own `HostList`; which links an
owner opens, and what it has held when, as `owned_boxes` of the overlay does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from hushcast_analytics.generator.draws import hexes, uniform, words
from hushcast_analytics.generator.presence import Presence, listed, presence
from hushcast_analytics.generator.scenario import EPOCH_SECONDS, GeneratorScenario
from hushcast_analytics.generator.tree_epochs import DAY_SECONDS, begins
from hushcast_analytics.generator.tree_seats import subscribers
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY
from hushcast_protocol.overlay.host_list import Draw, HostList

AWAY_EPOCHS, AWAY_AT_FIRST = (
    2,
    0.0,
)  # until the second host is used: epochs; seconds while nobody knows the box
HOSTS_DAYS = 1  # days that a host keeps a message beyond those on which relays take it
ATTACH_WITHIN = 10.0  # seconds from a start in which boxes attach, each at its moment
TRIED_AGAIN = 60.0  # seconds between an owner's attempts to reach a host
QUIET_FOR = 45.0  # seconds without a message after which a host has brought all
COMES_WITHIN = (
    0.5  # days after a lease's own until an owner comes for what came late; tests compare these six
)
HOLD_TAKES = 1.0  # seconds, about, from a link to an answer to what is asked for over it

Sight = Literal["installed", "attached", "detached"]


@dataclass(frozen=True)
class HostSight:
    """What a host (a relay's number) sees of a box; `day` is that of a lease."""

    kind: Sight
    host: int
    moment: float
    box: int = 0
    """Which of the subscription's boxes: 0, or with a box for each day the day."""
    day: int = 0


def sights(asked: GeneratorScenario, topic: int, subscriber: int) -> Iterator[HostSight]:
    """Yield what hosts see of a subscription's boxes in the whole run."""
    if not asked.fresh_boxes:
        yield from _Box(asked, topic, subscriber).sights(range(asked.epochs), range(asked.days))
        return
    for day in range(asked.days):
        first = int(begins(asked, topic, day, subscriber) // EPOCH_SECONDS)
        end = min(asked.epochs, (day + 1 + HOSTS_DAYS) * EPOCHS_A_DAY)
        box = _Box(asked, topic, subscriber, day)
        yield from box.sights(range(first, end), range(day, day + 1))
        yield from box.leave(end - 1)


class _Box:
    """One box, and its owner."""

    def __init__(self, asked: GeneratorScenario, topic: int, subscriber: int, number: int = 0) -> None:
        self._asked, self._topic, self._subscriber, self._number = asked, topic, subscriber, number
        self._owner = int(subscribers(asked, topic)[subscriber])
        self._there = presence(asked)[self._owner]
        self._reached = reached(asked)
        self._held: dict[int, int] = {}  # the last day for which a host holds a lease, while something waits
        self._due: dict[int, float] = {}  # from when on hosts that were left are asked for what came late
        self._is_known = False  # to relays at the top
        self._linked: dict[int, float] = {}  # since when, by host
        self._begun: dict[int, float] = {}  # when a day's leases are asked for

    def sights(self, epochs: range, days: range) -> Iterator[HostSight]:
        """Yield what hosts see in some epochs, for leases of some days."""
        hosts: HostList | None = None
        looked, leases = -1, set[tuple[int, int]]()
        for epoch in epochs:
            if not self._there[epoch]:
                yield from self.leave(epoch - 1)
                continue
            day = epoch // EPOCHS_A_DAY
            if hosts is None or looked < day:
                hosts, looked = self._looked(hosts, epoch), day
            hosts = self._tried(hosts, epoch)
            yield from self._link(hosts, epoch)
            current = _numbers(self._asked)[hosts.current]
            self._due.pop(current, None)
            for wanted in (day, day + 1) if current in self._linked else ():
                if wanted not in days or (current, wanted) in leases:
                    continue
                moment = max(self._begins(wanted), self._linked[current])
                if moment < (epoch + 1) * EPOCH_SECONDS:
                    leases.add((current, wanted))
                    self._held[current] = max(wanted, self._held.get(current, wanted))
                    self._is_known = True
                    moment = max(moment, epoch * float(EPOCH_SECONDS)) + HOLD_TAKES
                    yield HostSight("installed", current, moment, self._number, wanted)

    def _looked(self, hosts: HostList | None, epoch: int) -> HostList:
        names, day = _listed_names(self._asked, epoch), epoch // EPOCHS_A_DAY
        draw = self._draw(epoch)
        if hosts is None:
            drawn = HostList.drawn(names, day, draw)
            return HostList(drawn.hosts[: self._asked.hosts])
        return hosts.look(names, day, draw) if len(hosts.hosts) > 1 else hosts

    def _begins(self, day: int) -> float:
        if day not in self._begun:
            self._begun[day] = begins(self._asked, self._topic, day, self._subscriber)
        return self._begun[day]

    def _draw(self, epoch: int) -> Draw:
        def draw(relays: list[bytes], count: int) -> list[bytes]:
            keys = (self._topic, self._subscriber, self._number, epoch)
            chance = words(self._asked.seed, "host", *keys, np.arange(len(relays)))
            return [relays[place] for place in np.argsort(chance, kind="stable")[:count]]

        return draw

    def _tried(self, hosts: HostList, epoch: int) -> HostList:
        """Return the list once the owner has tried its first host, and then the second, if it is to."""
        first, second = (_numbers(self._asked)[relay] for relay in (hosts.relays[0], hosts.relays[-1]))
        if self._reached[first, epoch]:
            return hosts.answered(hosts.relays[0])
        now = epoch * float(EPOCH_SECONDS)
        hosts = hosts.failed(hosts.relays[0], now, self._patience, False)
        # Tried again within the epoch, if what nobody knows yet is to be moved so soon.
        now += 0.0 if self._is_known else AWAY_AT_FIRST
        is_there = second != first and self._is_needed(hosts, second, now) and self._reached[second, epoch]
        return hosts.failed(hosts.relays[0], now, self._patience, bool(is_there))

    @property
    def _patience(self) -> float:
        return AWAY_EPOCHS * float(EPOCH_SECONDS) if self._is_known else AWAY_AT_FIRST

    def _is_needed(self, hosts: HostList, host: int, now: float) -> bool:
        return hosts.needs(relay_names(self._asked)[host], now, self._patience)

    def _link(self, hosts: HostList, epoch: int) -> Iterator[HostSight]:
        """Lose the links of hosts that are away, open those that are needed, and end the others.

        Of hosts that are not needed those are visited that are due.
        """
        self._linked = {host: since for host, since in self._linked.items() if self._reached[host, epoch]}
        middle = (epoch + 0.5) * EPOCH_SECONDS  # whoever is there in an epoch is there then
        kept = {host for host, day in self._held.items() if (day + 1 + HOSTS_DAYS) * DAY_SECONDS > middle}
        self._held = {host: day for host, day in self._held.items() if host in kept}
        for host in {*(_numbers(self._asked)[relay] for relay in hosts.relays), *kept}:
            is_needed = self._is_needed(hosts, host, epoch * EPOCH_SECONDS + AWAY_AT_FIRST)
            is_due = host in kept and self._due.get(host, 0.0) < middle
            if not self._reached[host, epoch] or not (is_needed or is_due or host in self._linked):
                continue
            if host not in self._linked:
                moment = self._attaches(host, epoch)
                if not is_needed:
                    moment = max(moment, self._due.get(host, 0.0))
                self._linked[host] = moment
                yield HostSight("attached", host, moment, self._number)
            if not is_needed:
                yield self._left(hosts, host, epoch)

    def _left(self, hosts: HostList, host: int, epoch: int) -> HostSight:
        """Return the end of the link to a host that is not needed; draw when the owner comes again."""
        first = _numbers(self._asked)[hosts.relays[0]]
        since = self._linked.pop(host)
        if epoch and not self._reached[first, epoch - 1]:
            since = max(since, self._attaches(first, epoch))
        moment = max(since, epoch * float(EPOCH_SECONDS)) + QUIET_FOR
        lapse = (self._held.get(host, -2) + 1) * DAY_SECONDS + EPOCH_SECONDS / 2
        if moment >= lapse:
            self._held.pop(host, None)
            self._due.pop(host, None)
        else:
            chance = float(
                uniform(self._asked.seed, "due", self._topic, self._subscriber, self._number, host, epoch)
            )
            opened = (moment - EPOCH_SECONDS / 2) // DAY_SECONDS  # the first day of which messages may come
            lapse = (opened + 1) * DAY_SECONDS + EPOCH_SECONDS / 2
            self._due[host] = lapse + chance * COMES_WITHIN * DAY_SECONDS
        return HostSight("detached", host, moment, self._number)

    def leave(self, epoch: int) -> Iterator[HostSight]:
        """Yield the ends of its links, as the owner's daemon goes in an epoch, or is done with the box."""
        moment = leaves(self._asked, self._owner, epoch)
        for host in self._linked:
            yield HostSight("detached", host, moment, self._number)
        self._linked = {}

    def _attaches(self, host: int, epoch: int) -> float:
        asked = self._asked
        chance = float(uniform(asked.seed, "attaches", self._topic, self._subscriber, host, epoch))
        before = max(0, epoch - 1)
        came = comes(asked, self._owner, epoch) if not epoch or not self._there[before] else 0.0
        if epoch and not self._reached[host, before]:
            return max(came, comes(asked, host, epoch)) + TRIED_AGAIN * chance
        return came + ATTACH_WITHIN * chance if came else (epoch + chance / 2) * EPOCH_SECONDS


def comes(asked: GeneratorScenario, daemon: int, epoch: int) -> float:
    """Return the moment (seconds) at which a daemon comes in the first epoch in which it is there."""
    return (epoch + 0.5 * float(uniform(asked.seed, "comes", daemon, epoch))) * EPOCH_SECONDS


def leaves(asked: GeneratorScenario, daemon: int, epoch: int) -> float:
    """Return the moment (seconds) at which a daemon goes in the last epoch in which it is there."""
    return (epoch + 0.5 + 0.5 * float(uniform(asked.seed, "leaves", daemon, epoch))) * EPOCH_SECONDS


@lru_cache(maxsize=2)
def reached(asked: GeneratorScenario) -> Presence:
    """Return whether owners reach each relay (row) in each epoch (column)."""
    found: Presence = presence(asked)[: asked.nodes].copy()
    if asked.kept_away:
        found[asked.watchers :] = False
    return found


@lru_cache(maxsize=2)
def relay_names(asked: GeneratorScenario) -> list[bytes]:
    """Return what relays are called, by their numbers."""
    return [
        bytes.fromhex(name) for name in hexes(asked.seed, "relay", 32, np.arange(asked.nodes)).to_pylist()
    ]


@lru_cache(maxsize=2)
def _numbers(asked: GeneratorScenario) -> dict[bytes, int]:
    return {name: number for number, name in enumerate(relay_names(asked))}


@lru_cache(maxsize=2048)
def _listed_names(asked: GeneratorScenario, epoch: int) -> frozenset[bytes]:
    names = relay_names(asked)
    return frozenset(names[number] for number in np.flatnonzero(listed(asked)[:, epoch]))
