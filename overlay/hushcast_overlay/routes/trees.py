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
from hushcast_protocol.overlay.installations import Installation, ListedRoot, MailboxRoot
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
        """Plan an installation for a day: along the tree with this number to its mailbox, or a new one.

        There is a roster, and the mailbox has its address. As published, every day has a new tree, and so has
        a mailbox of one day. Raises what `Shards.find` does.
        """
        tokens = await route.wanted.tokens(day)
        seating = (await self._shards.find(day, tokens.trunk, route.copy)).seating()
        root = self._root(route, day)
        before = [
            planned
            for planned in route.planned.values()
            if planned.number == number and isinstance(root, MailboxRoot) and planned.leads_to(root.seed)
        ]
        if not before:
            own = self._relay if self._profile.root is Root.LISTED else None
            tree = await self._drawn(relay for relay in seating.listed if relay != own)
        else:
            last = max(before, key=lambda planned: planned.key).installation.tree
            await route.coverage.judge()
            suspects = route.coverage.shunned(seating.listed)
            tree = await self._mended(last, seating, seating.listed.keys(), suspects, STRAINED)
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
        near = await self._shards.find(installation.day, installation.trunk, installation.copy)
        seating = near.seating()
        await route.coverage.judge()
        suspects = route.coverage.shunned(seating.listed)
        in_step = seating.listed.keys() <= tree.parents.keys() <= seating.kept
        if (
            in_step
            and not any(map(tree.children.get, suspects))
            and strain(tree, self._profile.depth) < BROKEN
        ):
            return False
        confirmed = seating.listed.keys() & tree.parents.keys() - planned.unconfirmed
        mended = await self._mended(tree, seating, confirmed, suspects, BROKEN)
        changed = {relay for relay in mended.parents if not _same_seat(relay, tree, mended)}
        planned.reseat(mended, changed)
        route.coverage.tree_changed(self._env.now())
        return bool(changed)

    async def _mended(
        self,
        tree: Tree,
        seating: Seating,
        confirmed: Set[RelayId],
        suspects: Collection[RelayId],
        bearable: float,
    ) -> Tree:
        """Return a tree in step with the rosters; one drawn anew where its strain is `bearable` no more."""
        gone = leaving(tree, seating.kept, self._env.randomness(32))
        staying = [relay for relay in tree.parents if relay not in gone]
        mended = await self._env.compute(mend, tree, staying, suspects, self._env.randomness(32))
        newcomers = [relay for relay in seating.listed if relay not in tree.parents]
        firm = [relay for relay in mended.parents if relay in confirmed and relay not in suspects]
        spare = [relay for relay in mended.parents if relay not in confirmed and relay not in suspects]
        seed = self._env.randomness(32)
        depth = self._profile.depth
        grown = await self._env.compute(graft, mended, newcomers, firm, depth, seed, spare)
        return await self._drawn(seating.listed) if strain(grown, depth) >= bearable else grown

    async def _drawn(self, relays: Iterable[RelayId]) -> Tree:
        return await self._env.compute(plan, relays, self._profile.depth, self._env.randomness(32))

    def _root(self, route: OverlayRoute, day: int) -> MailboxRoot | ListedRoot:
        if self._profile.root is Root.LISTED:
            assert self._relay is not None
            return ListedRoot(self._relay)
        mailbox = route.mailbox(day)
        assert mailbox is not None
        assert mailbox.address is not None
        return MailboxRoot(mailbox.seed, mailbox.address)


def _same_seat(relay: RelayId, one: Tree, other: Tree) -> bool:
    above = one.parents.get(relay, relay) == other.parents[relay]
    return above and set(one.children.get(relay, ())) == set(other.children.get(relay, ()))
