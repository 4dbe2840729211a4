"""The links of owners: what waits in a box is pushed over the one that its owner opened last.

While there is a link, which this end never opens, there is a machine (`base/link/hop.py`); without one all
waits in the spool alone. Those who send to a box are answered as if there were none: what comes is written to
links a moment later, when it has been answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from hushcast_overlay.relay.boxes.host_word import HostWord
from hushcast_overlay.relay.boxes.kept_boxes import KeptBoxes
from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.hop import NextHop
from hushcast_protocol.base.link.hop_link import LinkState
from hushcast_protocol.base.link.hop_values import HopActions, HopRules, ReadBack, SendItems, Settle
from hushcast_protocol.base.wire import RelayId, Wire
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.box_frames import MAX_TOP_COPIES, HoldAnswer, MessageCopy, TopCopies
from hushcast_protocol.overlay.frame_directions import FromOwner
from hushcast_protocol.overlay.frames import Forward, ParcelAnswer, Ping
from hushcast_protocol.overlay.hops import box_hop, key_of
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import READ_AT_ONCE, Spool, SpooledMessage
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.channel_writer import Writer

WINDOW = 512 * 1024  # bytes sent to an owner before the next wait: its tor has many circuits to serve
# Seconds, drawn anew, until what has come goes to the owner: whoever sent it has its answer by then.
PUSH_WITHIN = 0.05
# Of one owner, until it has taken the answer: a tree of 2,000 relays has 45 parcels at its top.
MAX_OWNERS_REQUESTS = 64
SIGN_OF_LIFE = 120.0  # seconds between two looks at links, at which each owner hears that its host is there

_Actions = HopActions["OwnerLink", SpooledMessage]


class OwnerLink(LinkState[SpooledMessage]):
    """The open link of an owner, with the machine that sends on it."""

    __slots__ = (
        "_answers",
        "_copies",
        "_due",
        "_is_stuck",
        "_is_telling",
        "_is_whole",
        "_timed",
        "box",
        "coming",
        "is_gathering",
        "machine",
        "parcels",
        "writer",
    )

    def __init__(
        self,
        box: bytes,
        channel: Channel[FromOwner],
        spawn: Callable[..., None],
        rules: HopRules[SpooledMessage],
        now: float,
    ) -> None:
        super().__init__(now)
        self.box = box
        self.writer = Writer(channel, spawn, wrote=self._wrote)
        self.machine: NextHop[OwnerLink, SpooledMessage] = NextHop(rules)
        self.coming: list[SpooledMessage] = []
        """What is in the window, and not handed to the writer yet."""
        self.is_gathering = False
        self.parcels: set[trio.CancelScope] = set()
        """Those of the owner's that are being carried out."""
        self._answers = 0  # posted, and not written yet
        self._copies: list[MessageCopy] = []  # that the owner has not been told of
        self._is_whole = True
        self._is_telling = False  # what it is told of the last ones is not written yet
        self._is_stuck = False
        self._due = 0  # how many messages had been sent at the last look
        self._timed = 0.0
        self.set_timer(now)

    @property
    def sent(self) -> int:
        """How many messages it was sent."""
        return self._acknowledged + len(self.unacknowledged)

    def begin_request(self) -> None:
        """Make sure that another request may be carried out; raise `DecodeError` if there are too many."""
        if len(self.parcels) + self._answers >= MAX_OWNERS_REQUESTS:
            raise DecodeError("an owner asks for more at once than any tree needs, or takes no answers")

    def answer(self, frame: Wire) -> None:
        """Write the answer to a request."""
        self._answers += 1
        self.writer.post(frame)

    def note(self, copy: MessageCopy) -> None:
        """Note a copy to tell the owner of; of too many it is told that some are missing."""
        if len(self._copies) < MAX_TOP_COPIES:
            self._copies.append(copy)
        else:
            self._is_whole = False

    def tell(self) -> None:
        """Tell the owner of copies, once it has taken what it was told before."""
        if self._copies and not self._is_telling:
            self._is_telling = True
            self.writer.post(TopCopies(tuple(self._copies), self._is_whole))
            self._copies, self._is_whole = [], True

    def look(self) -> None:
        """End the link of an owner that has not taken since the last look what there was for it then.

        That is one answer, and all messages that had been sent: memory holds them, also where they gave way.
        """
        if (self._answers and self._is_stuck) or self._acknowledged < self._due:
            self.writer.scope.cancel()
        self._is_stuck = bool(self._answers)
        self._due = self.sent

    def _wrote(self, frame: Wire) -> None:
        if isinstance(frame, HoldAnswer | ParcelAnswer):
            self._answers -= 1
            self._is_stuck = False
        elif isinstance(frame, TopCopies):
            self._is_telling = False
            self.tell()

    def begin_parcel(self) -> trio.CancelScope:
        """Return the scope in which to carry out a parcel; it ends with the link."""
        scope = trio.CancelScope()
        self.parcels.add(scope)
        return scope

    def set_timer(self, now: float) -> None:
        """End the link at its deadline, which is by the clock that says `now`."""
        if self.deadline != self._timed:
            self._timed = self.deadline
            self.writer.scope.deadline = trio.current_time() + (self.deadline - now)


class BoxLinks:
    """The open links of one relay's boxes, at most one each."""

    def __init__(self, boxes: KeptBoxes, own: HostWord, spool: Spool, context: Context) -> None:
        self._boxes = boxes
        self._lanes = boxes.lanes
        self._own = own
        self._spool = spool
        self._env = context.env
        self._now = context.env.elapsed
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._rules: HopRules[SpooledMessage] = HopRules(
            spool.holds, context.env.randomness, goes_around=False, dials=False, window=WINDOW
        )
        self._links: dict[bytes, OwnerLink] = {}
        self._is_looked_after = False

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._links)

    def begin(self, box: bytes, channel: Channel[FromOwner]) -> OwnerLink:
        """Say how a box stands, and send what waits in it; an older link of its owner's ends."""
        if (older := self._links.get(box)) is not None:
            older.writer.scope.cancel()
        now = self._now()
        link = self._links[box] = OwnerLink(box, channel, self._spawn, self._rules, now)
        self._tracer.observe(observations.Attached(box))
        link.writer.post(self._own.standing(*self._boxes.standing(box)))
        self._do(link, link.machine.link_up(link, is_dialled=False, now=now))
        if box not in self._lanes:
            self._do(link, link.machine.resume(now))
        if not self._is_looked_after:
            self._is_looked_after = True
            self._spawn(self._look_after)
        return link

    def end(self, link: OwnerLink) -> None:
        """Hear that a link is gone; what it sent and nobody acknowledged waits in the spool."""
        link.writer.scope.cancel()
        for parcel in link.parcels:
            parcel.cancel()
        if self._links.get(link.box) is link:
            del self._links[link.box]
            self._tracer.observe(observations.Detached(link.box))

    def enqueue(self, placed: Iterable[tuple[Hop, SpooledMessage]]) -> None:
        """Take what was spooled for boxes, and send it where an owner is there; never what a lane is for."""
        now = self._now()
        for box, item in self._boxes.take(placed):
            if box in self._lanes:
                self._lanes.came(box, item)
            elif (link := self._links.get(box)) is not None:
                self._do(link, link.machine.enqueue((item,), now), is_new=True)

    def came(self, boxes: Iterable[Hop], message: bytes, relay: RelayId) -> None:
        """Tell the owners of boxes, where they are there, that a relay brought a copy of a message."""
        for box in boxes:
            if (link := self._links.get(key_of(box))) is not None and link.box not in self._lanes:
                link.note(MessageCopy(message, relay))
                self._gather(link)

    def acknowledged(self, link: OwnerLink, number: int) -> None:
        """Take an acknowledgement; raise `DecodeError` where it is of what was not sent."""
        if number > link.sent:
            raise DecodeError("a message is acknowledged that was not sent")
        if self._links.get(link.box) is link:
            self._do(link, link.machine.acknowledged(link, number, (), self._now()))
            self.heard(link)  # with less that has to be acknowledged soon

    def heard(self, link: OwnerLink) -> None:
        """Note that an owner has said something."""
        link.touch(now := self._now())
        link.set_timer(now)

    async def _look_after(self) -> None:
        """Look at links, and show signs of life on them, until there are none."""
        while self._links:
            await trio.sleep(SIGN_OF_LIFE)
            for box, link in list(self._links.items()):
                if self._links.get(box) is link:
                    self._look(link)
                    await trio.lowlevel.checkpoint()
        self._is_looked_after = False

    def _look(self, link: OwnerLink) -> None:
        link.look()
        if link.machine.queued > self._boxes.size_of(link.box):  # what gave way is in memory still
            link.writer.scope.cancel()
        if link.box in self._boxes:
            link.writer.post(Ping())

    def _do(self, link: OwnerLink, actions: _Actions, is_new: bool = False) -> None:
        for action in actions:
            if isinstance(action, SendItems):
                self._send(link, action.items, is_new)
            elif isinstance(action, Settle):
                self._boxes.settled(link.box, action.items)
            else:
                what = "an owner opens its links itself, one after the other, and there is no other way"
                assert isinstance(action, ReadBack), what
                self._spawn(self._read_back, link, action.after)

    def _send(self, link: OwnerLink, items: list[SpooledMessage], is_new: bool) -> None:
        link.set_timer(self._now())
        link.coming += items
        if is_new:
            self._gather(link)
        elif not link.is_gathering:
            self._write(link)

    def _gather(self, link: OwnerLink) -> None:
        """Write what there is for an owner a moment later."""
        if not link.is_gathering:
            link.is_gathering = True
            self._spawn(self._write_later, link)

    async def _write_later(self, link: OwnerLink) -> None:
        await trio.sleep(self._env.uniform(0.0, PUSH_WITHIN))
        link.is_gathering = False
        if self._links.get(link.box) is link:
            self._write(link)

    def _write(self, link: OwnerLink) -> None:
        self._counters.add("messages_sent", len(link.coming))
        for item in link.coming:
            link.writer.post(Forward(item.message))
            self._tracer.observe(observations.Sent(item.message.id, item.message.tokens, link.box))
        link.coming.clear()
        link.tell()

    async def _read_back(self, link: OwnerLink, after: SpooledMessage | None) -> None:
        items = await self._spool.waiting(box_hop(link.box), after, READ_AT_ONCE)
        if self._links.get(link.box) is link:
            self._do(link, link.machine.read_back(items, self._now()))
