"""A route: what the overlay holds for one interest.

It has a box at a host, on all days; or a mailbox, which lasts on days that are not cut into shards. On a day
that is cut a mailbox is of that day alone: what shows when it is there shows that for a day only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import trio

from hushcast_overlay.routes.coverage import OverlayCoverage
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.installations import HostRoot, Installation, InstallationRoot, MailboxRoot
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.carriers.carrier import RoutedInterest
from hushcast_runtime.environment import Environment

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
    """Relays that stood directly under a root before: what waits there for a host comes when it is back."""

    @property
    def key(self) -> tuple[int, int]:
        """Day and number."""
        return self.installation.day, self.number

    def leads_to(self, end: Seed) -> bool:
        """Tell whether it brings messages to the mailbox or the box with this seed."""
        root = self.installation.root
        if isinstance(root, HostRoot):
            return root.box == end
        return isinstance(root, MailboxRoot) and root.seed == end

    @property
    def nodes(self) -> int:
        """The number of relays that confirmed."""
        return len(self.installation.tree.parents) - len(self.unconfirmed)

    @property
    def reaches_root(self) -> bool:
        """Whether a relay directly under the root confirmed: all that arrives comes by one of these."""
        return not self.unconfirmed.issuperset(self.installation.tree.children.get(None, ()))

    def confirm(self, relays: set[RelayId]) -> None:
        """Note that relays have installed what they were told."""
        self.unconfirmed -= relays

    def reseat(self, tree: Tree, changed: set[RelayId], root: InstallationRoot) -> None:
        """Take a mended tree and its root; the relays whose seat changed have to confirm anew."""
        tops = dict.fromkeys(tree.children.get(None, ()))
        before = self.installation.tree.children.get(None, ())
        self.former = {top: None for top in (*before, *self.former) if top not in tops}
        if root != self.installation.root:
            changed = changed | tops.keys()
        self.installation = dataclasses.replace(self.installation, tree=tree, root=root)
        self.unconfirmed = (self.unconfirmed & tree.parents.keys()) | changed

    def tell_again(self, suspects: Iterable[RelayId]) -> None:
        """Count relays that lose probes among those that have not confirmed, each once."""
        new = self.installation.tree.parents.keys() & set(suspects) - self.told_again
        self.told_again |= new
        self.unconfirmed |= new


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
class RouteMailbox:
    """One address at which messages arrive for a route, and what its next one depends on."""

    seed: Seed
    renewal: float
    """Share of a day before its end at which the next day is installed: drawn, so that each has its own."""
    day: int | None = None
    """The one day that it is for; `None`: all days that are not cut."""
    address: Address | None = None
    published: trio.Event = field(default_factory=trio.Event)
    """Set when relays can find it."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    """What serves it."""
    is_begun: bool = False
    """Whether it is served, or being opened."""
    is_fresh: bool = False
    """Whether it was drawn in this life of the daemon: no relay has heard of it before a tree leads to it."""

    @classmethod
    def draw(cls, env: Environment, seed: Seed | None = None) -> RouteMailbox:
        """Draw one that no relay has heard of; a spare has its seed already."""
        seed = seed or Seed.draw(env.randomness)
        return cls(seed, env.uniform(LATEST_RENEWAL, EARLIEST_RENEWAL), is_fresh=True)

    @property
    def is_there(self) -> bool:
        """Whether relays can find it."""
        return self.published.is_set()


RouteEnd = RouteMailbox | RouteBox
"""What the trees of a day lead to."""


@dataclass(eq=False)
class OverlayRoute:
    """Mailboxes, a box, and the trees that lead to them, for one interest."""

    wanted: RoutedInterest
    lasting: RouteMailbox | None = None
    """The mailbox of all days that are not cut."""
    daily: dict[int, RouteMailbox] = field(default_factory=dict)
    """Those of days that are cut."""
    box: RouteBox | None = None
    """What a host keeps."""
    boxed: set[int] = field(default_factory=set)
    """Days whose trees are to lead to the box, once they are planned."""
    planned: dict[tuple[int, int], TreeInstallation] = field(default_factory=dict)
    """By day, and number of the tree."""
    coverage: OverlayCoverage = field(default_factory=OverlayCoverage)
    stirred: trio.Event = field(default_factory=trio.Event)
    """Set when a mailbox is published, or a host answers: what waits for it need not wait any more."""
    no_other_before: float = -math.inf
    """Unix time before which no mailbox of its own is opened for the next day."""
    is_reached: bool = False
    """Whether a relay directly under the root has confirmed, in this life of the daemon."""
    ready: trio.Event = field(default_factory=trio.Event)
    """Set when messages of the running day reach it."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    withdrawals: list[Withdrawal] = field(default_factory=list)
    """What is left to withdraw, once it has ended."""

    @property
    def topic(self) -> str:
        """The topic's name, for traces."""
        return self.wanted.interest.topic.name

    @property
    def copy(self) -> int:
        """Which of its topic's 2^width shards it is in: drawn with the name of what is wanted, it stays."""
        return self.wanted.name[0] % (1 << self.wanted.interest.topic.width)

    @property
    def mailboxes(self) -> list[RouteMailbox]:
        """All its mailboxes."""
        return [*([self.lasting] if self.lasting is not None else []), *self.daily.values()]

    def mailbox(self, day: int) -> RouteMailbox | None:
        """Return the mailbox of a day: one of that day alone, or the lasting one."""
        return self.daily.get(day, self.lasting)

    def end(self, day: int) -> RouteEnd | None:
        """Return what the trees of a day lead to; where there are none yet, what they may lead to."""
        if self.box is None:
            return self.mailbox(day)
        planned = self.on(day)
        is_boxed = planned[0].leads_to(self.box.seed) if planned else day in self.boxed
        return self.box if is_boxed else self.mailbox(day)

    @property
    def ends(self) -> list[RouteEnd]:
        """All that messages come to."""
        return [*self.mailboxes, *([self.box] if self.box is not None else [])]

    def take(self, mailbox: RouteEnd) -> None:
        """Hold a box, or a mailbox for the day or the days that it is for."""
        if isinstance(mailbox, RouteBox):
            self.box = mailbox
        elif mailbox.day is None:
            self.lasting = mailbox
        else:
            self.daily[mailbox.day] = mailbox

    def leave(self, mailbox: RouteMailbox) -> None:
        """Hold a mailbox no more."""
        if mailbox.day is None:
            self.lasting = None
        else:
            del self.daily[mailbox.day]

    def stop(self) -> None:
        """Hand in nothing more, mend and tell nothing more."""
        self.scope.cancel()
        for mailbox in self.mailboxes:
            mailbox.scope.cancel()
        if self.box is not None:
            self.box.is_ended = True

    def on(self, day: int) -> list[TreeInstallation]:
        """Return what is installed for a day."""
        return [planned for planned in self.planned.values() if planned.installation.day == day]

    def towards(self, end: Seed) -> list[TreeInstallation]:
        """Return what is installed and leads to the mailbox or the box with this seed."""
        return [planned for planned in self.planned.values() if planned.leads_to(end)]

    def is_top(self, mailbox: Seed, relay: RelayId) -> bool:
        """Tell whether a relay stands directly under a mailbox in one of the trees that lead to it."""
        return any(
            planned.installation.tree.parents.get(relay, relay) is None for planned in self.towards(mailbox)
        )
