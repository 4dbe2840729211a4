"""Detours: takes messages around a next hop that is lost, into the same trees elsewhere.

A message whose next hop is away, or knows nothing of it, is handed to a random relay with the bypass tokens
of just those leases that it followed: it enters no other tree, and redundancy is paid on failure alone. How
often, and for how long, `detour_pace` says. A lease whose next hop keeps saying that it knows nothing of it
is pruned (threat model, rows 7 and 10).

A drop that no lease leads on from here is handed on to a random relay, to up to three in turn, with the trunk
among the tokens that it enters by: this relay may have been away when a tree was told, or be new. Where it
knows that it was (`missed_trees`), it hands on also what leases of others lead on.

Either goes to relays that were listed before the day's trees were told, if there are any: others may have no
lease, either.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping, Sequence

from hushcast_overlay.relay.detour_pace import MAX_WALK, REST, DetourPace, DetourTurn
from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.messages import MAX_TOKENS, Message
from hushcast_protocol.overlay.forwarding import Router
from hushcast_protocol.overlay.hops import key_of, relay_hop
from hushcast_protocol.overlay.trail import BITS_A_LABEL, trail_bits
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.storage.spool import Spool, SpooledMessage, SpoolMove

PRUNE_AFTER = 8  # messages in a row that a next hop did not know; a tree being repaired causes a few at most
MAX_STRANGERS = 4096  # (day, next hop, trunk) with such messages that are remembered; 0.5 MB
MAX_DETOURS = 12  # relays that may in turn not know a message's tree: 1 in 4,000 if half of them do not
# Relays that a drop without a lease is handed on to in turn: with one, drawn from all, a network that grew by
# two thirds on a day lost a message in a hundred. No more: nobody may subscribe to it at all.
HAND_ONS = 3
MAX_TRIED = 4096  # messages and ways that did not lead on that are remembered; 0.5 MB


_Followed = tuple[int, Hop, bytes]  # day, next hop, trunk


class Detours:
    """Chooses the ways around; the spool remembers them."""

    def __init__(
        self,
        relay: RelayId,
        shards: Shards,
        leases: LeaseStore,
        router: Router,
        spool: Spool,
        env: Environment,
        counters: Counters,
    ) -> None:
        self._relay = relay
        self._shards = shards
        self._leases = leases
        self._router = router
        self._spool = spool
        self._env = env
        self._counters = counters
        self._strangers: OrderedDict[_Followed, int] = OrderedDict()
        self._tried: OrderedDict[tuple[bytes, bytes], int] = OrderedDict()
        self._pace = DetourPace()
        self._resting: dict[Hop, tuple[SpooledMessage, float]] = {}  # the last that rests, and until when

    def resting(self, hop: Hop) -> SpooledMessage | None:
        """Return the last message that rests while its next hop `hop` is away: those to go around lie behind.

        None where none rests, or it is time to look at all again.
        """
        if hop in self._resting and self._env.elapsed() >= self._resting[hop][1]:
            del self._resting[hop]
        return self._resting[hop][0] if hop in self._resting else None

    async def around(
        self, hop: Hop, items: Iterable[SpooledMessage], away: Container[Hop]
    ) -> list[tuple[Hop, SpooledMessage]]:
        """Move spooled messages from `hop` to relays that are not `away`; return where they wait now.

        Where all other relays are away it is this relay that is cut off, and messages stay where they are. So
        do those that rest, which `resting` tells, and those that were tried for long enough are forgotten.
        Where no lease sends to `hop` any more a message goes the way that its lease has now, for a tree may
        have been mended; where the lease has ended it is forgotten.
        """
        others_on: dict[int, list[Hop]] = {}
        detours, mended, ended, lost = [], [], [], []
        now, is_listed = self._env.elapsed(), self._shards.relay(key_of(hop)) is not None
        for item in items:
            if (message := self._detour(hop, item.message)) is not None:
                if message.day not in others_on:
                    others_on[message.day] = _told(message.day, self._others(message.day, hop, away))
                if not (others := others_on[message.day]):
                    continue
                turn = self._pace.turn(message, hop, is_listed, now) if hop in away else DetourTurn.GOES
                if turn is DetourTurn.ENDS:
                    lost.append(item)
                    self._router.unsent(item.message, (hop,))  # whoever drops it anew begins anew
                elif turn is DetourTurn.RESTS:
                    self._rest(hop, item, now)
                else:
                    detours.append(SpoolMove(item, others[self._env.below(len(others))], message))
                    if hop in away:
                        # It may enter its tree below here, and comes by again: then it is no copy. But who
                        # knows nothing of it, as a victim that leases were pointed at, gets it once.
                        self._router.unsent(item.message, (hop,))
                continue
            ways = self._router.moved(item.message, hop, now)
            mended += [SpoolMove(item, way, item.message) for way in ways]
            if not ways:
                ended.append(item)
        self._counters.add("messages_detoured", len(detours))
        self._counters.add("messages_lost_detour", len(lost))
        self._counters.add("messages_without_lease", len(ended))
        self._spool.done(ended + lost)
        return await self._spool.move(detours + mended)

    def with_room(self, day: int, size: int, away: Container[Hop]) -> list[Hop]:
        """Return a day's relays that are not `away` and whose share of the spool takes `size` bytes more."""
        relays = self._others(day, None, away)
        return _told(day, {hop: since for hop, since in relays.items() if self._spool.has_share(hop, size)})

    def aside(self, send: HopMessage, others: Sequence[Hop]) -> HopMessage | None:
        """Return a message on a way around its next hop, whose share is full, by one of `others`.

        None where there is no way around, or the message has gone around so often that all are full.
        """
        if trail_bits(send.message.trail).bit_count() > MAX_WALK * BITS_A_LABEL:
            return None
        message = self._detour(send.hop, send.message)
        if message is None or not others:
            return None
        place = self._env.below(len(others))
        if others[place] == send.hop:
            place = (place + 1) % len(others)
        if others[place] == send.hop:
            return None
        self._counters.add("messages_detoured")
        return HopMessage(others[place], message)

    def elsewhere(self, drop: Message, away: Container[Hop]) -> HopMessage | None:
        """Return a drop whose leases may lack here on its way to a random relay; none if there is no other.

        It enters there as it did here: with all its tokens, but for the last of as many as there may be.
        """
        others = self.with_room(drop.day, len(drop.body), away)
        if not others:
            return None
        self._counters.add("drops_handed_on")
        self._note_times(drop.id, drop.tokens[0], 0)
        tokens = (drop.tokens[0], *drop.tokens)[:MAX_TOKENS]
        handed_on = Message(drop.id, drop.day, tokens, drop.trail, drop.body)
        return HopMessage(others[self._env.below(len(others))], handed_on)

    async def unrouted(
        self, hop: Hop, items: Iterable[SpooledMessage], away: Container[Hop]
    ) -> list[tuple[Hop, SpooledMessage]]:
        """Take messages around a next hop that has no element for them; prune what it never knows."""
        on: list[SpooledMessage] = []
        ended: list[SpooledMessage] = []
        lost = 0
        strange: list[Message] = []
        for item in items:
            if not self._spool.holds(item):
                continue
            message = item.message
            is_detour = len(message.tokens) > 1
            way = message.tokens[1] if is_detour else hop
            is_drop = _is_handed_on(message)
            # In a flood of drops nobody knows how often one was handed on: it ends, or none of them would.
            is_forgotten = is_drop and (message.id, way) not in self._tried
            times = self._times(message.id, way)
            is_over = is_detour and (is_forgotten or times >= (HAND_ONS if is_drop else MAX_DETOURS))
            (ended if is_over else on).append(item)
            lost += is_over and not is_drop
            if not is_detour and times == 1:  # it may come by again, and be as strange as before
                strange.append(message)
        self._counters.add("messages_lost_detour", lost)
        self._spool.done(ended)
        placed = await self.around(hop, on, away)
        # No other relay is there for these; the drop itself waits for a lease a while.
        self._spool.done(item for item in on if _is_handed_on(item.message) and self._spool.holds(item))
        for message in strange:
            await self._note_stranger((message.day, hop, message.tokens[0]))
        return placed

    def routed(self, hop: Hop, items: Iterable[SpooledMessage]) -> None:
        """Note that a next hop knew what to do with messages."""
        if self._strangers:
            for item in items:
                self._strangers.pop((item.message.day, hop, item.message.tokens[0]), None)

    def _rest(self, hop: Hop, item: SpooledMessage, now: float) -> None:
        _, until = self._resting.pop(hop, (None, now + REST))
        for other in [other for other, (_, over) in self._resting.items() if over <= now]:
            del self._resting[other]
        self._resting[hop] = (item, until)

    def _detour(self, hop: Hop, message: Message) -> Message | None:
        if len(message.tokens) > 1:
            return message  # a detour already: on to another relay
        followed = self._leases.book.followed(message.day, hop, message.tokens[0], MAX_TOKENS)
        bypasses = dict.fromkeys(lease.bypass for lease in followed)
        if not bypasses:
            return None
        tokens = (message.tokens[0], *bypasses)[:MAX_TOKENS]
        return Message(message.id, message.day, tokens, message.trail, message.body)

    def _others(self, day: int, lost: Hop | None, away: Container[Hop]) -> dict[Hop, int]:
        """Return the relays that a message of a day, which is routed here, can go around by, and since when.

        That is the epoch since which each is listed.
        """
        near = self._shards.own(day)
        try:
            relays = near.current().relays if near is not None else {}
        except Refusal:
            return {}
        hops = {relay_hop(id_): relay.since for id_, relay in relays.items() if id_ != self._relay}
        return {hop: since for hop, since in hops.items() if hop != lost and hop not in away}

    def _times(self, message_id: bytes, way: bytes) -> int:
        """Count how often a message did not get on by one way."""
        times = self._tried.get((message_id, way), 0) + 1
        self._note_times(message_id, way, times)
        return times

    def _note_times(self, message_id: bytes, way: bytes, times: int) -> None:
        self._tried.pop((message_id, way), None)
        self._tried[message_id, way] = times
        if len(self._tried) > MAX_TRIED:
            self._tried.popitem(last=False)

    async def _note_stranger(self, followed: _Followed) -> None:
        count = self._strangers.pop(followed, 0) + 1
        if count < PRUNE_AFTER:
            self._strangers[followed] = count
            if len(self._strangers) > MAX_STRANGERS:
                self._strangers.popitem(last=False)
        elif pruned := await self._leases.prune(*followed):
            self._counters.add("leases_pruned", pruned)
            log.info("leases were pruned: their next hop knows nothing of them")


def _is_handed_on(message: Message) -> bool:
    """Tell whether it is a drop that led nowhere here: its trunk is a token that it enters by, too."""
    return len(message.tokens) > 1 and message.tokens[1] == message.tokens[0]


def _told(day: int, since: Mapping[Hop, int]) -> list[Hop]:
    """Return those of some relays that were listed when a day's trees were told; else their older half."""
    told = [hop for hop, epoch in since.items() if epoch <= (day - 1) * EPOCHS_A_DAY]
    if told or not since:
        return told
    middle = sorted(since.values())[(len(since) - 1) // 2]
    return [hop for hop, epoch in since.items() if epoch <= middle]
