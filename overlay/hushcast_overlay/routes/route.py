"""A route: what the overlay holds for one interest, from what its trees lead to down to who confirmed."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

import trio

from hushcast_overlay.routes.coverage import OverlayCoverage
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.installations import HostRoot, Installation, InstallationRoot
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.carriers.carrier import RoutedInterest

MAX_FOREIGN = 8192  # ids of messages that came and are not ours, of one route; 1 MB
EARLIEST_RENEWAL, LATEST_RENEWAL = 0.5, 0.25  # shares of a day before its end


@dataclass(eq=False)
class TreeInstallation:
    """One tree's installation for one day, and which of its relays have not confirmed it."""

    name: bytes  # of what is wanted
    number: int  # of the tree, from 0
    installation: Installation
    unconfirmed: set[RelayId]
    told_again: set[RelayId] = field(default_factory=set)
    """Relays that were told once more because probes are lost there: they may have lost their lease."""
    former: dict[RelayId, None] = field(default_factory=dict)
    """Relays that stood directly under a root before, or below a relay that is the host now."""
    is_held: bool = False
    """Whether its host has confirmed, in this life of the daemon, that it takes what the tree brings."""
    due: set[RelayId] = field(init=False)
    """Relays that are to be told now. Who is away then is told no more on that day."""

    def __post_init__(self) -> None:
        """Have all told that have not confirmed, where nobody at the top has, after a restart too."""
        self.due = set() if self.reaches_root else set(self.unconfirmed)

    @property
    def key(self) -> tuple[int, int]:
        """Day and number."""
        return self.installation.day, self.number

    @property
    def host(self) -> RelayId | None:
        """The host that it leads to; none where the own relay is the root."""
        root = self.installation.root
        return root.relay if isinstance(root, HostRoot) else None

    def leads_to(self, box: Seed) -> bool:
        """Tell whether it brings messages to the box with this seed."""
        root = self.installation.root
        return isinstance(root, HostRoot) and root.box == box

    @property
    def nodes(self) -> int:
        """The number of relays that confirmed; where the host is the only relay, that is it."""
        if not self.installation.tree.parents:
            return int(self.is_held)
        return len(self.installation.tree.parents) - len(self.unconfirmed)

    @property
    def reaches_root(self) -> bool:
        """Whether a relay directly under the root confirmed: all that arrives comes by one of these.

        Where the host is the only relay, whether it did.
        """
        if not self.installation.tree.parents:
            return self.is_held
        return not self.unconfirmed.issuperset(self.installation.tree.children.get(None, ()))

    def confirm(self, relays: set[RelayId]) -> None:
        """Note that relays have installed what they were told: nobody tells them again."""
        self.unconfirmed -= relays
        self.due -= relays

    def reseat(self, tree: Tree, changed: set[RelayId], root: InstallationRoot) -> None:
        """Take a mended tree and its root; the relays whose seat changed have to confirm anew."""
        tops = dict.fromkeys(tree.children.get(None, ()))
        children = self.installation.tree.children
        before = list(children.get(None, ()))
        if isinstance(root, HostRoot):  # it may have had a seat: who stood below it sends there still
            before += children.get(root.relay, ())
        self.former = {top: None for top in (*before, *self.former) if top not in tops}
        if root != self.installation.root:
            changed = changed | tops.keys()
        self.installation = dataclasses.replace(self.installation, tree=tree, root=root)
        self.unconfirmed = (self.unconfirmed & tree.parents.keys()) | changed
        self.due = (self.due & tree.parents.keys()) | changed

    def tell_again(self, suspects: Iterable[RelayId]) -> None:
        """Count relays that lose probes among those that have not confirmed, each once."""
        new = self.installation.tree.parents.keys() & set(suspects) - self.told_again
        self.told_again |= new
        self.unconfirmed |= new
        self.due |= new

    def was_told(self) -> None:
        """Note that all who were due were told: but again, if nobody at the top was there."""
        if self.reaches_root:
            self.due.clear()


@dataclass(eq=False)
class Withdrawal:
    """The installation of a route that ended, and which of its relays have not confirmed that they forgot."""

    name: bytes  # of what was wanted
    number: int  # of the tree
    installation: Installation
    left: set[RelayId]
    is_under_way: bool = False
    is_done: bool = False


@dataclass(eq=False)
class ListedEnd:
    """The subscriber's own relay, which its trees lead to as published: it is there as long as they are."""

    name: bytes
    """Of what is wanted: a route has no other key."""
    renewal: float
    """Share of a day before its end at which the next day is installed."""

    @property
    def key(self) -> bytes:
        """What names the route in traces."""
        return self.name

    @property
    def is_there(self) -> bool:
        """Whether messages come, once trees lead to it."""
        return True


RouteEnd = RouteBox | ListedEnd
"""What trees lead to."""


@dataclass(eq=False)
class OverlayRoute:
    """What messages come to, and the trees that lead to it, for one interest."""

    wanted: RoutedInterest
    end: RouteEnd | None = None
    """What its trees lead to; a box is drawn when a day is looked at."""
    planned: dict[tuple[int, int], TreeInstallation] = field(default_factory=dict)
    """By day, and number of the tree."""
    coverage: OverlayCoverage = field(default_factory=OverlayCoverage)
    stirred: trio.Event = field(default_factory=trio.Event)
    """Set when a host answers: what waits for it need not wait any more."""
    renews: tuple[int, float] = (-1, 0.0)
    """A day, and the moment drawn on it at which the next one is installed."""
    turns: tuple[RelayId, float] | None = None
    """A host that trees do not lead to yet, and the moment drawn at which relays are told of it."""
    is_reached: bool = False
    """Whether a relay directly under the root has confirmed, in this life of the daemon."""
    ready: trio.Event = field(default_factory=trio.Event)
    """Set when messages of the running day reach it."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    withdrawals: list[Withdrawal] = field(default_factory=list)
    """What is left to withdraw, once it has ended."""
    foreign: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    """What came and is not ours, by id: anybody may publish on a trunk that he has seen pass."""

    @property
    def topic(self) -> str:
        """The topic's name, for traces."""
        return self.wanted.interest.topic.name

    @property
    def copy(self) -> int:
        """Which of its topic's 2^width shards it is in: drawn with the name of what is wanted, it stays."""
        return self.wanted.name[0] % (1 << self.wanted.interest.topic.width)

    @property
    def box(self) -> RouteBox | None:
        """What hosts keep for it; none before it is drawn, and where its own relay is the root."""
        return self.end if isinstance(self.end, RouteBox) else None

    def has(self, message: bytes) -> bool:
        """Tell whether a message has come, ours or not."""
        return message in self.foreign or self.wanted.knows(message)

    async def take(self, messages: list[Message]) -> None:
        """Hand in messages, each of which was checked; durable on return."""
        await self.wanted.take(messages)
        for message in messages:
            if not self.wanted.knows(message.id):
                self.foreign[message.id] = None
        while len(self.foreign) > MAX_FOREIGN:
            self.foreign.popitem(last=False)

    def stop(self) -> None:
        """Hand in nothing more, mend and tell nothing more."""
        self.scope.cancel()
        if self.box is not None:
            self.box.is_ended = True

    def on(self, day: int) -> list[TreeInstallation]:
        """Return what is installed for a day."""
        return [planned for planned in self.planned.values() if planned.installation.day == day]

    def towards(self, box: Seed) -> list[TreeInstallation]:
        """Return what is installed and leads to the box with this seed."""
        return [planned for planned in self.planned.values() if planned.leads_to(box)]
