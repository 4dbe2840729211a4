"""Drawings that the page lays out: boxes in levels from top to bottom, and arrows between them; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

PUBLISHER = "publisher"
"""The box of the publisher; relays have their names, mailboxes their keys."""
MAILBOX = "mailbox"
"""The box of the mailbox in the drawing of a tree."""


class Box(NamedTuple):
    """A daemon, or a mailbox, in a drawing."""

    id: str
    label: str
    kind: str  # `publisher`, `origin`, `relay`, `top`, `mailbox`, `aside`, or `idle` (a message passed by)
    note: str = ""  # a few letters under the label


class Arrow(NamedTuple):
    """From one box to another."""

    start: str
    end: str
    kind: str
    """`sent`, `again` (it came a second time), `unseen` (nobody noted that it came), `dropped` or `taken`."""


class Diagram(NamedTuple):
    """What is drawn."""

    levels: list[list[Box]]
    arrows: list[Arrow]

    def as_dict(self) -> dict[str, Any]:
        """Return it as the page gets it."""
        return {
            "levels": [[box._asdict() for box in level] for level in self.levels],
            "arrows": [arrow._asdict() for arrow in self.arrows],
        }


class TreePassage(NamedTuple):
    """What of a message's way lies in a tree."""

    publisher: str | None
    origins: Sequence[str]
    hops: Collection[tuple[str, str]]  # from box to box
    notes: Mapping[str, str]  # by box: when it came there


def tree_drawing(
    tree: Mapping[str, str | None], owner: str, daemons: Iterable[str], passage: TreePassage | None = None
) -> Diagram:
    """Draw a subscription's tree as messages go: relays by depth, the mailbox of `owner`, then the others.

    `tree` has each relay's next hop, `None` where that is the mailbox; the owner may be one of the relays.
    With the `passage` of a message its publisher stands above, and what it passed is told from the rest.
    """
    notes = passage.notes if passage is not None else {}
    below: dict[str | None, list[str]] = {}
    for relay, parent in tree.items():
        below.setdefault(parent, []).append(relay)
    levels = [[Box(MAILBOX, owner, "mailbox", notes.get(MAILBOX, "its box"))]]
    level = below.get(None, [])
    while level:
        kind = "top" if len(levels) == 1 else "relay"
        levels.append([_relay(relay, kind, passage) for relay in level])
        level = [lower for relay in level for lower in below.get(relay, [])]
    here = {*tree, owner, passage.publisher if passage is not None else None}
    others = [Box(name, name, "aside") for name in daemons if name not in here]
    hops = passage.hops if passage is not None else ()
    arrows = [
        Arrow(relay, parent or MAILBOX, "taken" if (relay, parent or MAILBOX) in hops else "sent")
        for relay, parent in tree.items()
    ]
    arrows.sort(key=lambda arrow: arrow.kind == "taken")  # those lie above the others
    if passage is not None:
        levels.append([Box(PUBLISHER, passage.publisher or "?", "publisher", "publisher")])
        arrows += [Arrow(PUBLISHER, origin, "dropped") for origin in passage.origins if origin in tree]
    levels.reverse()
    return Diagram([*levels, others] if others else levels, arrows)


def _relay(name: str, kind: str, passage: TreePassage | None) -> Box:
    """Return a relay of a tree: an origin of a message, one that it passed, or one that it did not."""
    if passage is None:
        return Box(name, name, kind)
    kind = "origin" if name in passage.origins else kind if name in passage.notes else "idle"
    return Box(name, name, kind, passage.notes.get(name, ""))


def levels_by_time(first: Mapping[str, float], arrows: Iterable[Arrow]) -> dict[str, int]:
    """Return the level of each box that saw a message `first` at these times: below all that sent it there.

    Only arrows that go forward in time count, so that detours and circles end.
    """
    sources: dict[str, list[str]] = {}
    for arrow in arrows:
        if arrow.start in first and arrow.end in first and first[arrow.start] < first[arrow.end]:
            sources.setdefault(arrow.end, []).append(arrow.start)
    levels: dict[str, int] = {}
    for name in sorted(first, key=first.__getitem__):
        levels[name] = 1 + max((levels[source] for source in sources.get(name, [])), default=-1)
    return levels
