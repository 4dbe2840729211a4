"""Carriers: how sealed messages travel. One interface, one conformance suite (`tests/carriers`).

A carrier never sees the content of a message, and does not know applications. It takes a sealed message and
returns a receipt; it keeps an interest routed and hands in the messages that arrive. Its guarantees:

- A message with a receipt arrives at every ready route of its interest, while its day is open.
- Where a network keeps what is published, it arrives for as long as that: at whoever was away, or a route
  that is wanted since an earlier day, or whose message was lost on its way. Whoever keeps nothing says so.
- Arrivals are handed in until they are durable (at least once); the receiver suppresses duplicates by id.
- An ended route hands in nothing more, and relays or servers are told to forget it.
- Routes survive restarts; a route that nobody wants any more after a restart is ended.
- State is bounded, and a refusal has a reason for people.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

import trio

from hushcast_protocol.base.epochs import EPOCHS_A_DAY, Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.versions.wires import OtherWire
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.carriers.cover import Covering
from hushcast_runtime.carriers.looks import Looked


class Handover(Protocol):
    """Callbacks on the progress of handing over a message."""

    def note_try(self, taker: bytes) -> None:
        """Note that it is being handed to a taker: a relay's key, or whatever names one to the carrier."""

    def note_receipt(self, taker: bytes) -> None:
        """Note that a taker has it durably."""

    def note_failure(self, reason: str) -> None:
        """Note that a taker gave no receipt, or refused; `reason` is for people."""


class Tokens(NamedTuple):
    """The tokens by which messages find a route on one day (16 bytes each)."""

    trunk: bytes
    """That all messages of the topic have."""
    entries: tuple[bytes, ...]
    """That a message needs one of; where carriers compare values themselves, what they compare with."""


class Probing(NamedTuple):
    """How subscriptions are probed over a carrier, unless a daemon's settings say otherwise."""

    a_day: float
    """Probes of each subscription; each is a message to all subscribers of its topic."""
    reports: bool
    """Whether they report what came: needed where a subscriber learns what it lacks from others alone."""


def probed_often(manner: Manner) -> Probing:
    """Return how, where what was published can be had from nobody but who brings it."""
    return Probing(manner.probes_an_epoch * EPOCHS_A_DAY, reports=True)


class RoutedInterest(Protocol):
    """An interest to keep routed, and the receiver of its messages."""

    @property
    def name(self) -> bytes:
        """16 random bytes, the same after a restart."""

    @property
    def interest(self) -> Interest:
        """The topic and the condition."""

    @property
    def terms(self) -> Mapping[str, Any] | None:
        """What is asked of the carrier beside being routed, in its own words; `None`: nothing."""

    @property
    def since(self) -> int | None:
        """The first day of which all that was published is wanted, its past too; `None`: no day before."""

    async def tokens(self, day: int) -> Tokens:
        """Return the tokens for a day; takes tens of milliseconds the first time."""

    def knows(self, message_id: bytes) -> bool:
        """Tell whether a message came before."""

    async def take(self, messages: list[Message]) -> None:
        """Take arrived messages, including repeats; durable on return. What raises has taken nothing."""

    def lose(self, count: int | None) -> None:
        """Take notice that so many messages were lost where they waited; on disk with the next write."""

    def miss(self, message_ids: list[bytes]) -> None:
        """Take notice that messages of its topic were published, and can be had no more."""

    def refuse(self, reason: str) -> None:
        """Take notice that the network does not take it as it is, for people; its route is ended next."""


class Route(Protocol):
    """One interest, kept routed."""

    @property
    def ready(self) -> trio.Event:
        """Set when messages of the running day arrive; and when the route has ended, or was refused."""

    def describe(self) -> dict[str, Any]:
        """Describe how it is routed: `nodes` is how many route to it, `by` what they are if not relays.

        `outlook` says for people when messages come, where that is not at once. Nobody waits until a route
        is ready that has one before. Then `presence` says what is seen of who reads by when this daemon is
        there, if anything is.
        """

    async def coverage(self) -> dict[str, Any]:
        """Describe how much of the network reaches it, by its probes."""

    async def losses(self) -> Mapping[bytes, tuple[float, float]]:
        """Return how many copies of its probes each relay lost and passed on; empty where nobody can tell.

        Of a relay that loses one size alone, or one number of tokens, these count.
        """

    async def probe(self, message: Message) -> bool:
        """Hand over a message of this interest as publications are, and watch for its arrival.

        Returns whether anybody took it. Raises `Refusal` as `Carrier.hand_over`.
        """

    def look_back(self) -> None:
        """Take notice that the interest is `since` an earlier day, as `Carrier.check_past` allows."""

    async def end(self) -> None:
        """Hand in nothing more; durable on return. Relays or servers are told in the background."""

    async def forgotten(self) -> None:
        """Tell relays or servers to forget an ended route; return when all were told or did not answer.

        Those that did not answer are told again in the background.
        """


class NeverTaken(Refusal):
    """What is published now is taken by nobody, however long it waits."""


def check_spoken(wire: NetworkWire) -> None:
    """Raise `NeverTaken` where a network speaks what this program does not."""
    try:
        wire.check()
    except OtherWire as other:
        raise NeverTaken(str(other)) from None


class Looking(Protocol):
    """What a carrier offers to publishers whose messages are kept."""

    def can_look(self, message: Message, width: int) -> bool:
        """Tell whether it can be known who keeps a message, whose topic has a width."""

    def prepare(self, message: Message) -> None:
        """Have it known before the earliest look."""

    async def look(self, message: Message, since: float) -> Looked:
        """Ask some of those who keep it; it was dropped first at `since` (Unix time)."""

    async def drop_anew(
        self, message: Message, handover: Handover, avoided: Collection[bytes], is_shown: bool
    ) -> None:
        """Hand it to takers once more, others than these where there are any; raise `Refusal`.

        `is_shown` says whether anybody who keeps it ever showed it.
        """


class Carrier(Protocol):
    """One way for sealed messages to travel."""

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""

    @property
    def manner(self) -> Manner:
        """How ends without a name show themselves in the wire of the network."""

    @property
    def probing(self) -> Probing:
        """How its subscriptions are probed: who keeps nothing of what was published says so by it."""

    def check_open(self) -> None:
        """Raise `Refusal` where nobody could take a message now; `NeverTaken` where nobody could later."""

    async def hand_over(
        self, message: Message, handover: Handover, taken: Collection[bytes] = (), width: int = 0
    ) -> None:
        """Hand a message to as many takers as the network wants that have not `taken` it, some tries each.

        `width` is that of its topic: carriers whose network is not cut have no use for it. Raises `Refusal`
        where there is nobody to hand it to; of a wide topic also where a part of its subscribers would not
        get it, which is to be tried again.
        """

    @property
    def looking(self) -> Looking | None:
        """How publishers look whether what they published is there; `None` where nobody could show it."""

    @property
    def covering(self) -> Covering | None:
        """What takes publications instead of `hand_over`, in rounds; `None` where nothing does."""

    def check_past(self, first: int) -> None:
        """Raise `Refusal`, with the way out, unless what was published from a day on is kept for all.

        Whoever keeps nothing refuses always.
        """

    async def resume(self, wanted: Collection[RoutedInterest]) -> Mapping[bytes, Route]:
        """After a restart, resume the routes of the interests still wanted, by name; end all others."""

    def keep(self, wanted: RoutedInterest) -> Route:
        """Begin to keep an interest routed; raise `Refusal` where this carrier or this daemon cannot."""


def check_no_terms(wanted: RoutedInterest) -> None:
    """Raise `Refusal` where a carrier that knows no terms is asked for some."""
    if wanted.terms is not None:
        raise Refusal("terms of a subscription (`--k`) need a network of brokers, and this is another")


def check_kept(keeper: str, days: int, first: int, today: int) -> None:
    """Raise `Refusal` unless what was published from a day on is kept.

    `keeper` is who keeps it, for people; `days` are those after its own for which it is kept, 0 for none.
    """
    if not days:
        raise Refusal(
            f"{keeper} keeps nothing of what was published before a subscription: leave `since` a time away, "
            "and messages come from now on"
        )
    if first < today - days:
        kept = f"{days} day" if days == 1 else f"{days} days"
        raise Refusal(f"{keeper} keeps what was published for {kept}: ask for `{days}d` or less")
