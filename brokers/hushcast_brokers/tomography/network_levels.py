"""Levels by all edge brokers: an edge broker asks the tomography service about filters that it may not show.

What is asked, and what follows from the answers, is decided by `protocol` in `tomography/crowd_watch.py`;
what is shown, in `exposure.py`. Here questions go out and answers come in: at the moments at which
the broker states, after its statements, so that a question tells no more of when somebody came than these,
and whoever is named in both is known as one.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Protocol

import trio

from hushcast_brokers.held_tree import HeldTree
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.network_crowd import CrowdWish, SubscriptionGroup
from hushcast_protocol.brokers.tomography.broker_statements import BrokerStatements
from hushcast_protocol.brokers.tomography.crowd_watch import CrowdWatch
from hushcast_protocol.brokers.tomography.frames import Ask, AskReply, Unwatch
from hushcast_protocol.brokers.tomography.tree_paths import between
from hushcast_protocol.content.topics import Topic
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log


class ExposedClients(Protocol):
    """The edge broker's clients, of whom something is to be shown."""

    changes: int

    def wishes(self) -> list[CrowdWish]:
        """Return what is worth knowing."""

    def review(self, topics: set[Topic]) -> None:
        """Look again at what is shown on topics of which something else is known."""


class NetworkLevels:
    """What one edge broker knows. Implements `NetworkCrowd`."""

    subscriptions: ExposedClients

    def __init__(
        self,
        ends: tuple[PublicKey, PublicKey],
        service: PublicKey,
        spread: int,
        tree: HeldTree,
        context: Context,
    ) -> None:
        """`ends` are the broker and the root; `spread` is how many edge brokers a crowd is to come from."""
        self._ends = ends
        self._tree = tree
        self._env = context.env
        self._counters = context.counters
        self._watch = CrowdWatch(service, spread)
        self._heard = trio.Event()
        self._seen = (-1, -1)

    def __len__(self) -> int:
        """The number of questions that are watched."""
        return len(self._watch)

    def says(self, shown: Filter, condition: AnonymityCondition, k: int, own: Set[Source]) -> bool:
        """Tell whether a filter is known to be k-anonymous, by an answer that is valid now."""
        return self._watch.says(shown, condition, k, own, self._env.now())

    def has_sunk(self, group: SubscriptionGroup) -> bool:
        """Tell whether a group's filter is known to have sunk."""
        return self._watch.has_sunk(group)

    def wider(self, group: SubscriptionGroup, own: Set[Source]) -> Filter | None:
        """Return what a probe has found for a group."""
        return self._watch.wider(group, own, self._env.now())

    async def run(self) -> None:
        """Forget answers that are over, or about another place in the tree; until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_tree)
            while True:
                self._heard = trio.Event()
                self._review(self._watch.expire(self._env.now()))
                due = self._watch.deadline() - self._env.now()
                with trio.move_on_after(max(0.0, min(due, 3600.0))):
                    await self._heard.wait()

    def reopened(self) -> None:
        """Put all questions again: the link to the service has opened anew."""
        self._watch.reopened()

    def questions(self, stating: BrokerStatements, epoch: int) -> list[Ask | Unwatch]:
        """Return what is to be said to the service now, after what is stated."""
        now, seen = self._env.now(), (self.subscriptions.changes, epoch)
        if seen == self._seen and not self._watch.is_due(now):
            return []
        self._seen = seen
        said, topics = self._watch.ask(self.subscriptions.wishes(), stating, epoch, now)
        self._counters.add("levels_asked", sum(isinstance(frame, Ask) for frame in said))
        self._review(topics)
        return said

    def hear(self, answered: AskReply) -> None:
        """Take an answer, or a refusal."""
        if answered.reason is not None:
            self._counters.add("levels_refused")
            log.info("the tomography service refused a question", reason=answered.reason)
        try:
            self._review(self._watch.hear(answered, self._env.now()))
        except PeerError as error:
            self._counters.add("levels_refused")
            log.warning("an answer of the tomography service does not hold", reason=str(error))
        self._heard.set()

    async def _follow_tree(self) -> None:
        while True:
            tree = self._tree.newest
            if tree is not None:
                self._review(self._watch.use(between(tree, *self._ends) or ()))
            if tree is self._tree.newest:
                await self._tree.changed()

    def _review(self, topics: set[Topic]) -> None:
        if topics:
            self.subscriptions.review(topics)
