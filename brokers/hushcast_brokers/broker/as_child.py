"""A broker as its parent's child: what it does with what the parent says."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_brokers.broker.advertising import Advertising
from hushcast_brokers.broker.forwarding import BrokerForwarding
from hushcast_brokers.broker.matching import Matching
from hushcast_brokers.broker.tree_keeper import TreeKeeper
from hushcast_brokers.community.held_charters import HeldCharters
from hushcast_brokers.tree_request import BrokerContact
from hushcast_brokers.upstream import Parent, Upstream
from hushcast_protocol.brokers import frames
from hushcast_protocol.content.messages import Message


class AsChild:
    """A broker as its parent's child (`UpstreamOwner`)."""

    upstream: Upstream

    def __init__(
        self,
        keeper: TreeKeeper,
        advertising: Advertising,
        matching: Matching,
        forwarding: BrokerForwarding,
        charters: HeldCharters | None,
    ) -> None:
        self._keeper = keeper
        self._charters = charters
        self._advertising = advertising
        self._matching = matching
        self._forwarding = forwarding

    def parent(self) -> Parent | None:
        """Return whom to keep a link to."""
        return self._keeper.parent()

    def others(self) -> Sequence[BrokerContact]:
        """Return whom else to ask for a tree."""
        return self._keeper.others()

    async def opened(self, standing: frames.ParentHello) -> None:
        """Say what the parent does not have."""
        await self._advertising.say(self.upstream, standing.digest)

    async def linked(self) -> None:
        """Begin what the privacy model says over each link."""
        await self._matching.linked(self.upstream)

    async def take(self, messages: list[Message]) -> None:
        """Take what came; durable on return."""
        parent = self._keeper.parent()  # none if the tree has just lost this broker
        await self._forwarding.take(messages, parent.peer.key if parent is not None else None)

    def exposed(self, exposed: frames.ExposureReport) -> None:
        """Do nothing: brokers have no terms with their parents."""

    def charters(self, frame: frames.Communities | frames.NewCharter) -> None:
        """Hear of communities."""
        if self._charters is not None:
            self._charters.hear(frame)
