"""A directory that delays rosters, and a colluding relay, which try to link the trees of one daemon.

The directory lists the relay in one roster of four, so that all trees have to seat it again. It gives that
roster at once to daemons that ask early, and later to the others: one random bit for each daemon and roster.
The relay notes when each tree seats it. Subscriptions with similar times are taken for one daemon's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from statistics import fmean
from typing import Any

from hushcast_directory.server.archive import ArchivedHead, epoch_of
from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_protocol.authorities.listing import ListedRelay
from hushcast_protocol.base.roster_standing import UNSEAT_AFTER
from hushcast_protocol.overlay.leases import lease_id, lease_word
from hushcast_runtime.environment import Environment
from hushcast_testnet.simulations.overlay_members import OverlayMember

PERIOD = UNSEAT_AFTER + 1  # epochs: listed in one, then gone for long enough to lose its seats
EARLY = 0.25  # share of the time before an epoch in which who asks is not made to wait: half of the daemons
NEVER = 2.0  # epochs after a roster: where the moment of a subscription that did not act is put

Owner = tuple[int, str]
"""A subscription: the number of its daemon, and its topic."""
Seated = Mapping[Owner, Mapping[int, float]]
"""When each subscription seated the relay, by round, in epochs after the roster's publication."""


class RosterDelays:
    """The directory and the relay, and what they find."""

    def __init__(
        self,
        directory: AuthorityDriver,
        env: Environment,
        relay: OverlayMember,
        clients: list[OverlayMember],
        delay: float,
    ) -> None:
        """Begin; `delay` is in epochs, from a roster's publication on."""
        self._calendar = directory._roll.calendar
        self._env = env
        self._relay = relay
        self._clients = clients
        self._delay = delay
        self._seated: dict[Owner, dict[int, float]] = defaultdict(dict)
        # A whole period first, in which trees lose the relay.
        self._first = (self._calendar.epoch(env.now()) // PERIOD + 2) * PERIOD
        self._bribe(directory)
        self._listen_in()

    def found(self) -> dict[str, Any]:
        """Return how often the companion of a subscription is named, how often by chance, and of how many."""
        owners = _owners(self._clients)
        rounds = range(int(self._since(self._first) // PERIOD))  # those that are over
        return {
            "trials": len(owners),
            "rounds": len(rounds),
            "by_chance": round(1 / len(self._clients), 4),
            "named": round(companions_named(self._seated, owners, rounds), 4),
        }

    def _since(self, epoch: int) -> float:
        """Return the epochs since a roster was published."""
        calendar = self._calendar
        return (self._env.now() - calendar.epoch_start(epoch) + calendar.lead) / calendar.epoch_seconds

    def _bribe(self, directory: AuthorityDriver) -> None:
        relay, archive = self._relay.key, directory._archive
        honest_list, honest_after = directory._ballot, archive.after

        async def listed(epoch: int, agreed: float) -> tuple[ListedRelay, ...]:
            everybody = await honest_list(epoch, agreed)
            return everybody if epoch % PERIOD == 0 else tuple(one for one in everybody if one[0] != relay)

        def after(epoch: int | None, latest: float = math.inf) -> tuple[ArchivedHead | None, bool]:
            shown, more = honest_after(epoch, latest)
            found = -1 if shown is None else epoch_of(shown.certified)
            if found < self._first or found % PERIOD:
                return shown, more
            lead = self._calendar.lead / self._calendar.epoch_seconds
            since = self._since(found)
            return (shown, more) if since < EARLY * lead or since > self._delay else (None, False)

        directory._ballot = listed  # type: ignore[method-assign]
        archive.after = after  # type: ignore[method-assign]

    def _listen_in(self) -> None:
        relay = self._relay.daemon.overlay.relay
        assert relay is not None
        book = relay.leases.book
        honest = book.install

        def install(*args: Any, **options: Any) -> Any:
            lease = honest(*args, **options)
            self._note(lease.id, lease.day)
            return lease

        book.install = install  # type: ignore[method-assign]

    def _note(self, lease: bytes, day: int) -> None:
        number, since = divmod(self._since(self._first), PERIOD)
        if number < 0 or since > NEVER or day != self._calendar.day(self._env.now()):
            return
        # A lease's id tells subscriptions apart for a day. From day to day topics do, and next hops in part:
        # the truth, which is more than they have.
        owner = _owners_of_leases(self._clients, self._relay).get(lease)
        if owner is not None:
            self._seated[owner].setdefault(int(number), since)


def companions_named(seated: Seated, owners: Collection[Owner], rounds: Collection[int]) -> float:
    """Return the share of subscriptions that acted most like one of the same daemon, among other topics'.

    Where several are equally like it, each counts for its part.
    """

    def apart(one: Owner, other: Owner) -> float:
        mine, its = seated.get(one, {}), seated.get(other, {})
        return fmean(abs(mine.get(at, NEVER) - its.get(at, NEVER)) for at in rounds) if rounds else 0.0

    hits = []
    for one in owners:
        others = {other: apart(one, other) for other in owners if other[1] != one[1]}
        nearest = [other for other, gap in others.items() if gap == min(others.values())]
        hits.append(fmean(other[0] == one[0] for other in nearest))
    return fmean(hits)


def _owners(clients: list[OverlayMember]) -> list[Owner]:
    return [
        (number, held.topic)
        for number, client in enumerate(clients)
        for held in client.daemon.overlay.routes.held
    ]


def _owners_of_leases(clients: list[OverlayMember], relay: OverlayMember) -> dict[bytes, Owner]:
    assert relay.key is not None
    return {
        lease_id(lease_word(planned.installation.secret, relay.key)): (number, held.topic)
        for number, client in enumerate(clients)
        for held in client.daemon.overlay.routes.held
        for planned in held.planned.values()
    }
