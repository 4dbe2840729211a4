"""Hand-ins: what is dropped at this relay goes to the keepers of its trunk, whoever subscribes.

It waits in the spool for each of them as for a next hop, until the keeper has it on disk or the day has
lapsed. What waits for keepers takes a share of the spool, and for one of them a part of that: beyond it
messages are routed, and not handed in there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.relay.keepers.kept_messages import KeptMessages
from hushcast_overlay.relay.next_hops import NextHops
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.hops import is_keeper, keeper_hop
from hushcast_protocol.overlay.keeper_frames import to_hand_in
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import MAX_SPOOL, Spool, by_hop

MAX_FOR_KEEPERS = MAX_SPOOL // 4  # bytes that wait for keepers, for each counted: what is routed goes first
# Of what the others leave, for one keeper: whoever takes nothing has strangers fill his part, and no more.
ONE_KEEPERS_PART = 0.25
MAX_HANDED_IN = 16_384  # ids that are remembered: a publisher that got no receipt drops again; 2 MB


class HandIns:
    """What one relay hands in."""

    def __init__(
        self,
        relay: RelayId,
        lists: CandidateLists,
        kept: KeptMessages,
        spool: Spool,
        next_hops: NextHops,
        context: Context,
    ) -> None:
        self._relay = relay
        self._lists = lists
        self._kept = kept
        self._spool = spool
        self._next_hops = next_hops
        self._counters = context.counters
        self._waited_for: set[Hop] = set()
        self._handed_in: OrderedDict[bytes, None] = OrderedDict()  # by id and trunk: neither binds the other

    def resume(self) -> None:
        """Count what waited for keepers before a restart; the spool is read back already."""
        self._waited_for = {hop for hop in self._spool.shares if is_keeper(hop)}

    def take(self, message: Message) -> None:
        """Hand in what was dropped here; it is durable with the next commit."""
        if (name := message.id + message.tokens[0]) in self._handed_in:
            return
        if not (keepers := self._lists.keepers(message.day, message.tokens[0])):
            if self._lists.keeping.keepers:  # too few relays, or it is not known who keeps on the day
                self._counters.add("messages_not_handed_in")
            return
        handed_in = to_hand_in(message)
        if self._relay in keepers:
            self._kept.keep_own(handed_in)
        others = [one for one in keepers if one != self._relay]
        sends = self._sends(handed_in, others)
        if others and not sends:
            self._counters.add("messages_not_handed_in")
            return
        self._handed_in[name] = None
        if len(self._handed_in) > MAX_HANDED_IN:
            self._handed_in.popitem(last=False)
        self._send(sends)

    def pass_on(self, message: Message, keepers: Iterable[RelayId]) -> None:
        """Hand what this relay fetched as a host in to keepers that did not show it; durable soon.

        Those of another shard, or of a day that is over, take it from nobody who is a stranger there.
        """
        near = self._lists.keepers(message.day, message.tokens[0])
        sends = self._sends(message, [one for one in keepers if one != self._relay and one in near])
        if sends:
            self._send(sends)

    def _send(self, sends: list[HopMessage]) -> None:
        self._waited_for.update(send.hop for send in sends)
        self._counters.add("messages_handed_in", len(sends))
        self._next_hops.enqueue(by_hop(self._spool.put(sends)))

    def _sends(self, message: Message, keepers: Iterable[RelayId]) -> list[HopMessage]:
        """Return what goes to which of these keepers: to those for whom there is room."""
        shares, size = self._spool.shares, len(message.body)
        self._waited_for &= shares.keys()
        waiting = sum(shares[hop] for hop in self._waited_for)
        sends: list[HopMessage] = []
        for hop in map(keeper_hop, keepers):
            own = shares.get(hop, 0)
            left = MAX_FOR_KEEPERS - (waiting - own)
            if own + size <= left * ONE_KEEPERS_PART and not self._spool.is_full(size * (len(sends) + 1)):
                sends.append(HopMessage(hop, message))
                waiting += size
        return sends
