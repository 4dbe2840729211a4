"""What the server keeps of publications, and its way to pseudonyms that ask for it, as fast as these take it.

A pseudonym asks by a token of its own kind (`kept_tokens`). Of what it asked for some waits in the spool at a
time, as deliveries do, and the next comes once that was acknowledged. What nobody is attached for does not
wait there, so that questions take no room from what is published. Where their half of the spool is full they
come in turn, and who does not take what waits for it gives way.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import trio

from hushcast_central.server.deliveries import Deliveries
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.central.kept_tokens import kept_token
from hushcast_protocol.central.pseudonym_register import hop_of, waits_for
from hushcast_protocol.central.rerouting import encrypted
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.kept_shares import trunk_day
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.kept_store import KeptStore
from hushcast_runtime.storage.spool import MAX_SPOOL, Spool

MAX_ASKED = 16  # days of topics that one pseudonym asks for; a daemon asks for one by each
HELD_FOR = 10.0  # seconds that a pseudonym may take for what waits for it, where another one waits for room
_LOOK_EVERY = 1.0  # seconds between looks whether there is room


@dataclass(eq=False)
class _Question:
    """What one pseudonym asked for."""

    left: deque[bytes] = field(default_factory=deque)
    """The days of topics of which not all was put into the spool, by name."""
    after: bytes | None = None
    """Behind what of the first of these it goes on."""
    fed: list[bytes] = field(default_factory=list)
    """The places of what was put there last."""
    before: tuple[tuple[bytes, ...], bytes | None] = (), None
    """What was left then, and behind what."""
    known: set[bytes] = field(default_factory=set)
    """All that were asked for."""
    is_fed: bool = False
    """Somebody is putting more into the spool."""


class KeptPublications:
    """What one server keeps."""

    def __init__(
        self,
        days: int,
        kept: KeptStore,
        key: Scalar,
        spool: Spool,
        deliveries: Deliveries,
        calendar: Calendar,
        context: Context,
    ) -> None:
        """`days` are how many after its own a message is kept for; 0: nothing is. `key` is the group's."""
        self._days = days
        self._kept = kept
        self._key = key
        self._spool = spool
        self._deliveries = deliveries
        self._calendar = calendar
        self._counters = context.counters
        self._spawn = context.spawn
        self._elapsed = context.env.elapsed
        self._questions: dict[bytes, _Question] = {}  # by pseudonym
        self._turn = trio.Lock()  # taken in the order in which it is waited for
        self._since: dict[bytes, float] = {}  # when something was put into the spool for whom, in order
        deliveries.follow(self._may_feed, self._take_back, self._forget)

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return self._kept.size

    async def load(self) -> None:
        """Know what was kept before a restart; what is of too early days goes with the next look."""
        await self._kept.load()

    def keep(self, proxy: PublicKey, message: Message) -> Sequence[Change]:
        """Keep a publication that a proxy brought, if any is kept; return what that changes in the store."""
        if not self._days:
            return ()
        trunk = message.tokens[0]
        mark = self._kept.mark_of(trunk_day(message.day, trunk))
        if mark is None:
            mark = encrypted(self._key, kept_token(message.day, trunk))
        return self._kept.keep(message, proxy, mark)

    def ask(self, pseudonym: bytes, tokens: Iterable[bytes]) -> None:
        """Bring to a pseudonym what is kept under tokens that it subscribed to, if anything is."""
        names = [name for token in tokens if (name := self._kept.find(token)) is not None]
        if not names:
            return
        question = self._questions.setdefault(pseudonym, _Question())
        fresh = [name for name in names if name not in question.known][: MAX_ASKED - len(question.known)]
        question.known.update(fresh)
        question.left += fresh
        self._counters.add("kept_asked_for", len(fresh))
        self._may_feed(pseudonym)

    def check_brought(self, pseudonym: bytes, tokens: Collection[bytes]) -> None:
        """Raise `Refusal` where something that is kept under these was not acknowledged by a pseudonym.

        Or anything else that it asked for: a proxy may have put another token into one of its two requests.
        So the server's answer to who withdraws them says that all of it has come.
        """
        names = [name for token in tokens if (name := self._kept.find(token)) is not None]
        question = self._questions.get(pseudonym) if tokens else None  # who withdraws all gives up
        known = question.known if question is not None else set[bytes]()
        is_left = question is not None and (hop_of(pseudonym) in self._spool.shares or question.left)
        if is_left or not known.issuperset(names):
            raise Refusal("quota")

    def is_bringing(self, hop: Hop) -> bool:
        """Tell whether what waits for a pseudonym may be what it asked for of days gone by."""
        return waits_for(hop) in self._questions

    async def expire(self, now: float) -> None:
        """Forget the days that are over for long enough, some messages at a time."""
        await self._kept.lapse(self._calendar.open_days(now).start - self._days)

    def _forget(self, pseudonym: bytes) -> None:
        self._questions.pop(pseudonym, None)
        self._since.pop(pseudonym, None)

    def _take_back(self, pseudonym: bytes) -> None:
        """Have what was put into the spool and not acknowledged wait where it is kept."""
        question = self._questions.get(pseudonym)
        if question is not None and (held := [place for place in question.fed if place in self._spool]):
            self._spool.forget(held)
            left, question.after = question.before
            question.left = deque(left)

    def _may_feed(self, pseudonym: bytes) -> None:
        """See to it that a pseudonym that is attached has more in the spool, if it took what was there."""
        question = self._questions.get(pseudonym)
        is_taken = hop_of(pseudonym) not in self._spool.shares
        if question is not None and question.left and is_taken and not question.is_fed:
            question.is_fed = True
            self._spawn(self._feed, pseudonym, question)

    async def _feed(self, pseudonym: bytes, question: _Question) -> None:
        try:
            async with self._turn:
                await self._has_room()
                while question.left and self._may_take(pseudonym, question):
                    messages, after = await self._kept.read(question.left[0], question.after)
                    if self._may_take(pseudonym, question):
                        self._place(pseudonym, question, messages, after)
        finally:
            question.is_fed = False

    def _may_take(self, pseudonym: bytes, question: _Question) -> bool:
        """Tell whether who asks is attached, and has acknowledged what it was brought; else it asks again."""
        is_asked = self._questions.get(pseudonym) is question and self._deliveries.is_attached(pseudonym)
        return is_asked and hop_of(pseudonym) not in self._spool.shares

    def _place(
        self, pseudonym: bytes, question: _Question, messages: Sequence[Message], after: bytes | None
    ) -> None:
        question.before = tuple(question.left), question.after
        question.after = after
        if after is None:
            question.left.popleft()
        self._counters.add("kept_brought", len(messages))
        placed = self._spool.put([HopMessage(hop_of(pseudonym), one) for one in messages])
        question.fed = [item.key for _, item in placed]
        self._since.pop(pseudonym, None)
        self._since[pseudonym] = self._elapsed()
        self._deliveries.enqueue(placed)

    async def _has_room(self) -> None:
        """Wait until questions' half of the spool has room, and let go whoever holds it for too long."""
        while self._spool.is_full(MAX_SPOOL // 2):
            pseudonym, since = next(iter(self._since.items()), (b"", math.inf))
            if pseudonym and hop_of(pseudonym) not in self._spool.shares:
                del self._since[pseudonym]
            elif since + HELD_FOR <= self._elapsed():
                del self._since[pseudonym]
                self._deliveries.let_go(pseudonym)
            else:
                await trio.sleep(_LOOK_EVERY)
