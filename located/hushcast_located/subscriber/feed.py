"""A feed while its block is open: asks the provider, hears its answers, and notes what was told."""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from types import TracebackType

import anyio
from msgspec.structs import replace

from hushcast.daemon import Daemon
from hushcast.errors import HushcastError, NoSuchCursor, TimedOut
from hushcast.events import Disconnected, Lost, Message, Reconnected
from hushcast.messages import Messages
from hushcast_located.subscriber import events
from hushcast_located.subscriber.environment import SubscriberEnvironment
from hushcast_located.subscriber.events import (
    Event,
    Interval,
    Lapsed,
    OwnerKeyChange,
    Unanswered,
    Uncovered,
    WeightsChange,
)
from hushcast_located.subscriber.feed_blur import FeedBlur
from hushcast_located.subscriber.provider_requests import LAST_WORDS, send
from hushcast_located.subscriber.request_schedule import RequestSchedule
from hushcast_located.subscriber.subscription_files import FeedRecord, NoFiles, SubscriptionFiles
from hushcast_protocol.base.errors import DecodeError, Refusal, UsageError
from hushcast_protocol.spatial import feed_events as machine
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.feed_events import FeedTrouble, IntervalArrived, RequestAccepted
from hushcast_protocol.spatial.feed_follower import FeedFollower
from hushcast_protocol.spatial.located_requests import WithdrawRequest
from hushcast_protocol.spatial.message_parts import Assembly
from hushcast_protocol.spatial.offer import read_offer


class Feed:
    """A subscription to a feed while its block is open: an asynchronous iterator over events.

    An event is done with when the next one is asked for, or the block is left without an error: it does not
    come again. What is not done with comes again in the next life of a subscription that has a name. One
    without a name ends with its block.
    """

    def __init__(
        self,
        daemon: Daemon,
        kept: FeedRecord,
        keeping: SubscriptionFiles | NoFiles,
        world: SubscriberEnvironment,
    ) -> None:
        """Programs use `subscribe`."""
        self._daemon, self._keeping, self._world = daemon, keeping, world
        self._offer = read_offer(kept.offer)
        self._requests = RequestSchedule.begin(world, kept)
        self._blur: FeedBlur | None = None
        self._messages: Messages | None = None
        self._follower: FeedFollower
        self._assembly = Assembly()
        self._step: machine.FeedEvent | None = (
            None  # of the machine, which the program was not told of so far
        )
        self._told: deque[Event] = deque()  # by this side; the machine has a queue of its own
        self._is_done = True  # whether the program is done with the last event
        self._is_over = False
        self._cursor = 0  # of the last message that came
        self._acknowledged = 0

    @property
    def name(self) -> str:
        """By which the subscription is kept; empty where it is not."""
        return self._keeping.name

    @property
    def nodes(self) -> int:
        """Relays, servers or edge brokers that route to the subscription; 0 where the carrier has none."""
        return 0 if self._messages is None else self._messages.nodes

    async def __aenter__(self) -> Feed:
        """Have messages routed to the daemon; return once they are. The provider is asked after that.

        Raises `UsageError` where nothing covers what is wanted, `Refusal`, `NoDaemon`.
        """
        try:
            await self._open()
        except BaseException:
            self._keeping.close()
            raise
        return self

    async def _open(self) -> None:
        kept = self._requests.kept
        if kept.blur is not None:
            self._blur = FeedBlur(self._daemon, self._offer, kept, self._keeping, self._world)
        if kept.told is None:
            told = kept.wanted if self._blur is None else await self._blur.first()
            kept = replace(kept, told=told)
            self._requests = RequestSchedule.begin(self._world, kept, is_chosen=True)
        self._save(kept)
        self._follower = self._begun(kept)
        messages = self._daemon.subscribe(kept.answers, acknowledge="manual")
        try:
            self._messages = await messages.__aenter__()
        except BaseException:  # the daemon may have begun it
            with suppress(HushcastError):
                await self._end()
            raise

    def _begun(self, kept: FeedRecord) -> FeedFollower:
        assert kept.told is not None
        following = FeedFollower(
            self._offer.owner,
            kept.told_before or kept.told,
            self._world.now(),
            kept.first or kept.number + 1,
            self._world.patience,
            kept.followed,
        )
        following.ask(kept.told)
        return following

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more. A subscription without a name is withdrawn, and ended in the daemon."""
        assert self._messages is not None
        try:
            if error is None:
                self._note()
            await self._messages.__aexit__(kind, error, trace)
            await self._end()
        finally:
            self._keeping.close()

    async def _end(self) -> None:
        """Leave nothing of a subscription that nobody could go on with: one without a name."""
        if not self.name:
            with anyio.move_on_after(LAST_WORDS, shield=True):
                await end(self._daemon, self._requests.kept, self._world)

    def __aiter__(self) -> Feed:
        """Iterate over events."""
        return self

    async def __anext__(self) -> Event:
        """Return the next event; the one before is done with."""
        if self._messages is None:
            raise UsageError("the feed is not open: `async with hushcast_located.subscribe(…) as feed`")
        self._note()
        while not self._is_over:
            if (event := await self._next(self._messages)) is not None:
                self._is_done = False
                return event
        raise StopAsyncIteration

    def undone(self) -> None:
        """Leave the last event undone, also when the block is left without an error: it comes again."""
        self._is_done = True

    async def _next(self, messages: Messages) -> Event | None:
        if self._told:
            return self._told.popleft()
        self._step = self._step or self._follower.step(self._world.now())
        if self._step is not None:
            event = await self._event(self._step)
            self._step = None
            return event
        await self._acknowledge()
        if (seconds := self._requests.silence()) is not None:
            return Unanswered(seconds)
        if self._world.now() >= self._requests.ask_at:
            await self._ask()
        moments = [self._requests.deadline, self._follower.deadline]
        wait = min(one for one in moments if one is not None) - self._world.now()
        try:
            came = await messages.next_event(max(wait, 0))
        except TimedOut:
            return None
        if isinstance(came, Message):
            self._hear(came)
            return None
        if isinstance(came, Lost):
            self._cursor = max(self._cursor, came.cursor)
        self._is_over = came is None
        return came if isinstance(came, Lost | Disconnected | Reconnected) else None

    def _hear(self, message: Message) -> None:
        if message.cursor <= self._cursor:  # somebody ended the subscription; it was begun anew
            self._acknowledged = 0
        self._cursor = message.cursor
        try:
            whole = self._assembly.take(message.payload, message.cursor)
        except DecodeError:
            whole = b""  # no reply, as the machine will find
        if whole is not None:
            self._follower.hear(whole, self._world.now(), message.cursor)

    async def _event(self, step: machine.FeedEvent) -> Event | None:
        """Return what the program is told of a step of the machine."""
        if isinstance(step, IntervalArrived):
            return await self._interval(step)
        if isinstance(step, machine.NewWeights):
            return WeightsChange(step.batch.body.number, step.batch.body.version)
        if isinstance(step, machine.NewOwnerKey):
            return OwnerKeyChange(step.batch.body.number, step.key.hex())
        if isinstance(step, RequestAccepted):
            if not self._requests.taken(step.number):
                return None
            self._save(self._requests.kept)
        return step

    async def _interval(self, step: IntervalArrived) -> Interval:
        body, found, is_complete = step.batch.body, step.messages, True
        if self._blur is not None:
            try:
                await self._blur.learn(step.batch)
            except InvalidAnswer:
                self._told.append(FeedTrouble(AnswerProblem.WEIGHTS, body.number, body.number))
            is_complete = self._blur.covers(step.asked, step.batch)
            found = self._blur.narrowed(found, step.batch)
        else:
            is_complete = self._is_wanted(step)
        if not is_complete and step.asked == self._requests.kept.told:
            self._tell_anew(body.number)
        said = tuple(events.message(one) for one in found)
        return Interval(body.number, body.start, body.seconds, said, step.is_late, is_complete)

    def _is_wanted(self, step: IntervalArrived) -> bool:
        """Tell whether what was answered is what is wanted, in words as the owner has texts cut."""
        if self._requests.kept.rule is not step.rule:
            with suppress(UsageError):  # not to be asked by that rule
                self._save(self._requests.kept.cut_by(step.rule))
        kept = self._requests.kept
        return kept.rule is step.rule and step.asked == kept.wanted

    def _tell_anew(self, number: int) -> None:
        """Tell the provider something that covers, by the new weights or words."""
        told = self._requests.kept.wanted if self._blur is None else self._blur.anew()
        is_mended = told is not None and told != self._requests.kept.told
        if told is not None and is_mended:
            self._follower.ask(told)
            self._requests.ask_anew(told)
        self._told.append(Uncovered(number, is_mended))

    async def _ask(self) -> None:
        is_lapsed = self._requests.is_lapsed
        request = self._requests.next()
        self._save(self._requests.kept)
        if is_lapsed:
            self._follower = self._begun(self._requests.kept)
            self._told.append(Lapsed())
        try:
            await send(self._daemon, self._offer, request, self._world)
        except Refusal as error:  # the outbox is full, say: it is asked again
            self._world.tell(f"the provider could not be asked so far: {error}")
        else:
            self._world.tell("asked the provider; relays or a server route to this daemon")

    def _note(self) -> None:
        """Note that the program is done with what it was told."""
        if not self._is_done:
            self._is_done = True
            self._save_state()

    def _save_state(self) -> None:
        state = self._follower.state
        if state != self._requests.kept.followed:
            self._save(replace(self._requests.kept, followed=state))

    def _save(self, kept: FeedRecord) -> None:
        self._requests.kept = kept
        self._keeping.save(kept)

    async def _acknowledge(self) -> None:
        """Acknowledge what came before the oldest message that waits for others; all else was noted."""
        waiting = [self._assembly.oldest, self._follower.oldest_mark]
        upto = min([self._cursor, *(one - 1 for one in waiting if one is not None)])
        if upto > self._acknowledged:
            self._save_state()  # intervals are passed in silence, too: those whose answer did not hold
            with suppress(NoSuchCursor):  # the subscription was begun anew: there is nothing of it any more
                await self._daemon.acknowledge(self._requests.kept.answers, upto, where="", timeout=math.inf)
            self._acknowledged = upto


async def end(daemon: Daemon, kept: FeedRecord, world: SubscriberEnvironment) -> None:
    """Withdraw a subscription at its provider, and end it in the daemon; raise what the daemon does."""
    try:
        if kept.number:
            request = WithdrawRequest(kept.name, kept.number + 1, kept.until)
            await send(daemon, read_offer(kept.offer), request, world)
    finally:
        await daemon.unsubscribe(kept.answers)
