"""Trees: plans a subscription's tree, mended by the rosters for each day, and keeps it over the day.

A tree that relays know of is not mended on its day: who watches a relay go would else see which trees react,
and whether their owners are there. What is lost meanwhile goes around (`detours`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from hushcast_overlay.routes.route import OverlayRoute, TreeInstallation
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.crypto.secrets import LeaseSecret
from hushcast_protocol.base.roster_standing import Seating
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.installations import (
    HostRoot,
    Installation,
    InstallationRoot,
    ListedRoot,
)
from hushcast_protocol.overlay.profile import Profile, Root
from hushcast_protocol.overlay.tree import STRAINED, Tree, graft, leaving, mend, plan, strain
from hushcast_protocol.overlay.tree_rule import TreeRule
from hushcast_runtime.environment import Environment


class Trees:
    """Draws the trees of one daemon's subscriptions."""

    def __init__(
        self,
        relay: RelayId | None,
        profile: Profile,
        shards: Shards,
        env: Environment,
        rule: TreeRule,
        is_kept: Callable[[int], bool],
    ) -> None:
        """`relay` is this daemon's own relay, if it runs one; `is_kept` tells of a day's messages."""
        self._relay = relay
        self._profile = profile
        self._shards = shards
        self._env = env
        self._rule = rule
        self._is_kept = is_kept

    def are_planted(self, day: int) -> bool:
        """Tell whether subscriptions have trees on a day; else their hosts have all of keepers."""
        hides = self._relay is not None and self._profile.root is not Root.LISTED
        return self._rule.plants(hides, self._is_kept(day))

    async def plan(self, route: OverlayRoute, day: int, number: int) -> TreeInstallation:
        """Plan an installation for a day: along the tree with this number to its box, or a new.

        There is a roster. As published, every day has a new tree, and so has
        a day that is cut, as it has other relays, and the day after. Raises what `Shards.find` does.
        """
        tokens = await route.wanted.tokens(day)
        seating = (await self._shards.find(day, tokens.trunk, route.copy)).seating()
        root = self._root(route)
        box = route.box
        before = [
            planned
            for planned in route.planned.values()
            if planned.number == number
            and box is not None
            and planned.leads_to(box.seed)
            and not any(map(self._shards.is_cut, (day, planned.installation.day)))
        ]
        seats = _Seats.listed_in(seating, root)
        if not before:
            tree = await self._drawn(seats.in_order)
        else:
            last = max(before, key=lambda planned: planned.key).installation.tree
            await route.coverage.judge()
            suspects = route.coverage.shunned(seats.listed)
            tree = await self._mended(last, seats, seats.listed, suspects, STRAINED)
        secret = LeaseSecret.draw(self._env.randomness)
        installation = Installation(day, root, tree, tokens.trunk, tokens.entries, secret, route.copy)
        return TreeInstallation(route.wanted.name, number, installation, set(tree.parents))

    async def mend(self, route: OverlayRoute, planned: TreeInstallation, turns: bool) -> bool:
        """Put suspects where they harm nobody, and, if it `turns`, have a tree lead to the host in use.

        A tree that no relay knows of yet does so, and comes in step with the rosters. Whose seat changed has
        to confirm. Returns whether any did. Raises what `Shards.find` does.
        """
        installation = planned.installation
        if isinstance(installation.root, ListedRoot):
            return False
        tree = installation.tree
        root = installation.root if planned.nodes and not turns else self._root(route)
        near = await self._shards.find(installation.day, installation.trunk, installation.copy)
        seats = _Seats.known(installation, root) if planned.nodes else _Seats.listed_in(near.seating(), root)
        await route.coverage.judge()
        suspects = route.coverage.shunned(seats.listed)
        in_step = seats.listed <= tree.parents.keys() <= seats.kept
        if in_step and root == installation.root and not any(map(tree.children.get, suspects)):
            return False
        confirmed = seats.listed & tree.parents.keys() - planned.unconfirmed
        bearable = math.inf if planned.nodes else STRAINED
        mended = await self._mended(tree, seats, confirmed, suspects, bearable)
        changed = {relay for relay in mended.parents if not _same_seat(relay, tree, mended)}
        has_moved = root != installation.root
        planned.reseat(mended, changed, root)
        route.coverage.tree_changed(self._env.now())
        return bool(changed) or has_moved

    def has_moved(self, route: OverlayRoute, planned: TreeInstallation) -> bool:
        """Tell whether the box that an installation leads to is at another host now."""
        installation = planned.installation
        return isinstance(installation.root, HostRoot) and installation.root != self._root(route)

    async def _mended(
        self,
        tree: Tree,
        seats: _Seats,
        confirmed: Set[RelayId],
        suspects: Collection[RelayId],
        bearable: float,
    ) -> Tree:
        """Return a tree in step with the rosters; one drawn anew where its strain is `bearable` no more."""
        gone = leaving(tree, seats.kept, self._env.randomness(32))
        staying = [relay for relay in tree.parents if relay not in gone and relay != seats.root]
        mended = await self._env.compute(mend, tree, staying, suspects, self._env.randomness(32))
        newcomers = [relay for relay in seats.in_order if relay not in tree.parents]
        firm = [relay for relay in mended.parents if relay in confirmed and relay not in suspects]
        spare = [relay for relay in mended.parents if relay not in confirmed and relay not in suspects]
        seed = self._env.randomness(32)
        depth = self._profile.depth
        grown = await self._env.compute(graft, mended, newcomers, firm, depth, seed, spare)
        return await self._drawn(seats.in_order) if strain(grown, depth) >= bearable else grown

    async def _drawn(self, relays: Iterable[RelayId]) -> Tree:
        return await self._env.compute(plan, relays, self._profile.depth, self._env.randomness(32))

    def _root(self, route: OverlayRoute) -> InstallationRoot:
        if self._profile.root is Root.LISTED:
            assert self._relay is not None
            return ListedRoot(self._relay)
        assert route.box is not None
        return HostRoot(route.box.seed, route.box.hosts.current)


@dataclass(frozen=True)
class _Seats:
    """Who has a seat in a tree: all but the relay that is its root."""

    root: RelayId | None
    in_order: Sequence[RelayId]
    kept: Set[RelayId]

    @classmethod
    def listed_in(cls, seating: Seating, root: InstallationRoot) -> _Seats:
        """Return the seats that the rosters give now."""
        relay = root.relay if isinstance(root, ListedRoot | HostRoot) else None
        listed = [one for one in seating.listed if one != relay]
        return cls(relay, listed, seating.kept - {relay})

    @classmethod
    def known(cls, installation: Installation, root: InstallationRoot) -> _Seats:
        """Return those of a tree that relays know of: the host that is left gets one, and gives it back."""
        relay = root.relay if isinstance(root, HostRoot) else None
        before = installation.root.relay if isinstance(installation.root, HostRoot) else relay
        seated = dict.fromkeys([*installation.tree.parents, *([before] if before is not None else [])])
        listed = [one for one in seated if one != relay]
        return cls(relay, listed, set(listed))

    @cached_property
    def listed(self) -> Set[RelayId]:
        """Those that are given one."""
        return set(self.in_order)


def _same_seat(relay: RelayId, one: Tree, other: Tree) -> bool:
    above = one.parents.get(relay, relay) == other.parents[relay]
    return above and set(one.children.get(relay, ())) == set(other.children.get(relay, ()))
