"""Carries one installation's instructions to its relays, down the tree first, then one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.neighbourhood import Neighbourhood
from hushcast_overlay.routes.host_link import HostLink
from hushcast_protocol.base.crypto.proof_of_work import MAX_INSIDE
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.roster import Relay, Roster
from hushcast_protocol.base.versions.translations import Translation
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.frame_directions import decode_parcel_answer
from hushcast_protocol.overlay.frames import ParcelFrame
from hushcast_protocol.overlay.installations import SealedBranch, seal_down, seal_through
from hushcast_protocol.overlay.leases import Instruction
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.environment import Environment
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError

MAX_DROPS = 16  # parcels being dropped at once; each takes a circuit

Instruct = Callable[[RelayId], Instruction]
Confirm = Callable[[set[RelayId]], None]


class Installer:
    """Delivers instructions; knows nothing of why."""

    def __init__(self, connector: Connector, env: Environment) -> None:
        self._connector = connector
        self._env = env
        self._drops = FewAtOnce(MAX_DROPS)

    async def deliver(
        self,
        tree: Tree,
        near: Neighbourhood,
        relays: Iterable[RelayId],
        instruct: Instruct,
        confirm: Confirm,
        host: HostLink | None = None,
    ) -> None:
        """Give each of some relays of a tree its instruction; `confirm` hears of those that confirmed.

        Relays that are not listed in the tree's neighbourhood any more are left out. Where there is a link to
        a `host` of that neighbourhood it passes the parcels on, but for the last round: what it keeps back is
        handed in directly. Another host does not know where those relays are. A relay that has no room for
        what costs nothing is paid at once: what it asks for is listed an epoch later, and it is told once.
        """
        if host is not None and near.relay(host.host.id) is None:
            host = None
        newest = near.newest
        listed = {relay: found for relay in relays if (found := near.relay(relay)) is not None}
        waiting = list(listed)
        roster = replace(newest, relays=listed) if newest is not None else None
        done: set[RelayId] = set()
        full: set[RelayId] = set()
        manner = self._connector.manner

        def note(others: trio.CancelScope | None, confirmed: set[RelayId]) -> None:
            if others is not None and confirmed:
                others.deadline = min(others.deadline, trio.current_time() + manner.next_round_after)
            done.update(confirmed)
            confirm(confirmed)

        for attempt in range(manner.rounds):
            missing = [relay for relay in waiting if relay not in done]
            if not missing or roster is None:
                break
            shape = tree.only(missing) if attempt == 0 else Tree(dict.fromkeys(missing))
            is_last = attempt == manner.rounds - 1
            by = host if host is not None and not is_last and host.is_open else None
            with trio.CancelScope() as others:
                heard = partial(note, None if is_last else others)
                await self._drop_down(shape, instruct, roster, heard, full, by)
        if roster is not None and (dear := full - done):
            priced = replace(roster, relays={relay: _at_most(listed[relay]) for relay in dear})
            await self._drop_down(Tree(dict.fromkeys(dear)), instruct, priced, confirm, set(), None)

    async def _drop_down(
        self,
        tree: Tree,
        instruct: Instruct,
        roster: Roster,
        confirm: Confirm,
        full: set[RelayId],
        host: HostLink | None,
    ) -> None:
        epoch = roster.network.calendar.epoch(self._env.now())
        by = None
        if host is not None:
            by = host.host.id
            roster = replace(roster, relays={**roster.relays, by: host.host})
        try:
            branches = await self._env.compute(
                _seal, tree, instruct, roster, epoch, self._env.randomness, self._connector.translation, by
            )
        except Refusal as refusal:
            log.error("a tree cannot be installed", reason=refusal.reason)
            return

        async def drop(top: RelayId, branch: SealedBranch) -> None:
            async with self._drops:
                confirm(await self._drop(tree, roster.relays[top], branch, full, host))

        async with trio.open_nursery() as nursery:
            for top, branch in branches.items():
                nursery.start_soon(drop, top, branch)

    async def _drop(
        self, tree: Tree, top: Relay, branch: SealedBranch, full: set[RelayId], host: HostLink | None
    ) -> set[RelayId]:
        a_level = self._connector.manner.patience_a_level
        patience = a_level * (1 + _levels(tree, top.id))
        try:
            if host is not None:
                answer = await host.pass_on(branch.sealed, patience + a_level)
            else:
                answer = await self._connector.drop(
                    top, ParcelFrame(0, branch.sealed, None), decode_parcel_answer, patience, is_drawn=False
                )
        except (TransportError, PeerError) as error:
            log.info("a parcel was not answered", reason=str(error))
            return set()
        if answer.refused is not None:
            log.info("a parcel was refused", reason=answer.refused)
            if answer.refused == "quota" and host is None:
                full.add(top.id)
            return set()
        return branch.confirmed(answer.confirmations)


def _at_most(relay: Relay) -> Relay:
    """Return a relay as one that asks for the most that any may."""
    return replace(relay, difficulty=max(relay.difficulty, MAX_INSIDE))


def _seal(
    tree: Tree,
    instruct: Instruct,
    roster: Roster,
    epoch: int,
    randomness: Randomness,
    by: Translation,
    host: RelayId | None,
) -> dict[RelayId, SealedBranch]:
    instructions = {relay: instruct(relay) for relay in tree.parents}
    if host is not None:
        return seal_through(host, tree, instructions, roster, epoch, randomness, by)
    return seal_down(tree, instructions, roster, epoch, randomness, by)


def _levels(tree: Tree, relay: RelayId) -> int:
    return max((1 + _levels(tree, child) for child in tree.children.get(relay, ())), default=0)
