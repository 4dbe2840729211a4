"""Trees: plans a subscription's tree, then keeps it over epochs and days, mended on the roster's schedule.

A tree is never mended in answer to an outage: who watches a relay go would else see which trees react. What
is lost meanwhile goes around (`detours`). Nor does it follow a roster when it comes, but when all do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set

from hushcast_overlay.routes.route import OverlayRoute, TreeInstallation
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.roster_standing import Seating
from hushcast_protocol.base.secrets import LeaseSecret
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.installations import (
    HostRoot,
    Installation,
    InstallationRoot,
    ListedRoot,
)
from hushcast_protocol.overlay.profile import Profile, Root
from hushcast_protocol.overlay.tree import BROKEN, STRAINED, Tree, graft, leaving, mend, plan, strain
from hushcast_runtime.environment import Environment


class Trees:
    """Draws the trees of one daemon's subscriptions."""

    def __init__(
        self,
        relay: RelayId | None,
        profile: Profile,
        shards: Shards,
        env: Environment,
    ) -> None:
        """`relay` is this daemon's own relay, if it runs one."""
        self._relay = relay
        self._profile = profile
        self._shards = shards
        self._env = env

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
        seats = _Seats(seating, root)
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

    async def mend(self, route: OverlayRoute, planned: TreeInstallation) -> bool:
        """Bring an installation's tree in step with the roster, and put suspects where they harm nobody.

        Whose seat changed has to confirm. Returns whether any did. Raises what `Shards.find` does.
        """
        installation = planned.installation
        if isinstance(installation.root, ListedRoot):
            return False
        tree = installation.tree
        root = self._root(route)
        near = await self._shards.find(installation.day, installation.trunk, installation.copy)
        seats = _Seats(near.seating(), root)
        await route.coverage.judge()
        suspects = route.coverage.shunned(seats.listed)
        in_step = seats.listed <= tree.parents.keys() <= seats.kept
        if (
            in_step
            and root == installation.root
            and not any(map(tree.children.get, suspects))
            and strain(tree, self._profile.depth) < BROKEN
        ):
            return False
        confirmed = seats.listed & tree.parents.keys() - planned.unconfirmed
        mended = await self._mended(tree, seats, confirmed, suspects, BROKEN)
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


class _Seats:
    """Who has a seat in a tree now, by the rosters: all but the relay that is its root."""

    def __init__(self, seating: Seating, root: InstallationRoot) -> None:
        self.root = root.relay if isinstance(root, ListedRoot | HostRoot) else None
        self.in_order = [relay for relay in seating.listed if relay != self.root]
        self.listed = set(self.in_order)
        self.kept = {relay for relay in seating.kept if relay != self.root}


def _same_seat(relay: RelayId, one: Tree, other: Tree) -> bool:
    above = one.parents.get(relay, relay) == other.parents[relay]
    return above and set(one.children.get(relay, ())) == set(other.children.get(relay, ()))
