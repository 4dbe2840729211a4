"""The subscriber's side of blur: the owner's table, what is told to the provider, and narrowing down."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast.daemon import Daemon
from hushcast_located.subscriber.environment import SubscriberEnvironment
from hushcast_located.subscriber.provider_requests import ask_table
from hushcast_located.subscriber.subscription_files import Blur, FeedRecord, NoFiles, SubscriptionFiles
from hushcast_protocol.base.errors import PeerError, Refusal, UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import InvalidAnswer
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.offer import Offer
from hushcast_protocol.spatial.similarity import WeightedSubscription
from hushcast_protocol.spatial.subscription_blur import cover, covers, narrowed
from hushcast_protocol.spatial.verification_object import WantedMessage
from hushcast_protocol.spatial.weight_table import WeightTable, read_table


class FeedBlur:
    """Tells the provider less than is wanted, and takes what is wanted from what it answers."""

    def __init__(
        self,
        daemon: Daemon,
        offer: Offer,
        kept: FeedRecord,
        keeping: SubscriptionFiles | NoFiles,
        world: SubscriberEnvironment,
    ):
        assert kept.blur is not None
        self._blur: Blur = kept.blur
        self._kept = kept
        self._daemon, self._offer, self._keeping, self._world = daemon, offer, keeping, world
        self._table: WeightTable | None = None
        if (data := keeping.load_table()) is not None:
            try:
                self._table = read_table(data, offer.owner)
            except PeerError:
                raise UsageError(
                    f"the table of {keeping.name} is damaged: unsubscribe, and subscribe anew"
                ) from None

    async def first(self) -> LocatedSubscription:
        """Return what the provider is told; raise `UsageError` where nothing can cover what is wanted."""
        if self._table is None:
            try:
                await self._ask()
            except InvalidAnswer:
                raise Refusal("the provider's table of weights is not what the owner signed") from None
        return self._cover()

    async def learn(self, batch: Batch) -> None:
        """Have the table of a batch, if the provider sends it; raise `InvalidAnswer` for another's."""
        if self._table is None or self._table.digest != batch.body.table:
            await self._ask()

    def covers(self, told: LocatedSubscription, batch: Batch) -> bool:
        """Tell whether all that is wanted of a batch is in an answer to what was told."""
        table = self._of(batch)
        return table is not None and covers(told, self._asked(table))

    def anew(self) -> LocatedSubscription | None:
        """Return what is to be told by the table of now, `None` where nothing covers."""
        try:
            return self._cover()
        except UsageError:
            return None

    def narrowed(self, messages: Sequence[WantedMessage], batch: Batch) -> tuple[WantedMessage, ...]:
        """Return the messages that are wanted; all of them where the table is not known."""
        table = self._of(batch)
        if table is None:
            return tuple(messages)
        return narrowed(self._asked(table), messages, table.body.rule)

    def _asked(self, table: WeightTable) -> WeightedSubscription:
        """Return what is wanted, by the weights and the words of a table."""
        try:
            kept = self._kept.cut_by(table.body.rule)
        except UsageError:  # not to be asked by this rule: what was told before is all that there is
            kept = self._kept
        return table.asked(kept.wanted)

    def _of(self, batch: Batch) -> WeightTable | None:
        return self._table if self._table is not None and self._table.digest == batch.body.table else None

    def _cover(self) -> LocatedSubscription:
        assert self._table is not None
        return cover(self._asked(self._table), self._blur.kilometres, self._blur.words)

    async def _ask(self) -> None:
        self._table = await ask_table(self._daemon, self._offer, self._world)
        self._keeping.save_table(encode(self._table.whole))
