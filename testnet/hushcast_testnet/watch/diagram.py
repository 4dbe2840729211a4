"""Drawings that the page lays out: boxes in levels from top to bottom, and arrows between them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MAILBOX = "mailbox"
"""The box of the mailbox in the drawing of a tree."""


class Box(NamedTuple):
    """A daemon, or a mailbox, in a drawing."""

    id: str
    label: str
    kind: str  # `publisher`, `origin`, `relay`, `top`, `mailbox` or `aside`
    note: str = ""  # a few letters under the label


class Arrow(NamedTuple):
    """From one box to another."""

    start: str
    end: str
    kind: str  # `sent`, `again` (it came a second time), `unseen` (nobody noted that it came) or `dropped`


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


def tree_drawing(tree: Mapping[str, str | None], owner: str, daemons: Iterable[str]) -> Diagram:
    """Draw a subscription's tree as messages go: relays by depth, the mailbox of `owner`, then the others.

    `tree` has each relay's next hop, `None` where that is the mailbox; the owner may be one of the relays.
    """
    below: dict[str | None, list[str]] = {}
    for relay, parent in tree.items():
        below.setdefault(parent, []).append(relay)
    levels = [[Box(MAILBOX, owner, "mailbox", "its mailbox")]]
    level = below.get(None, [])
    while level:
        kind = "top" if len(levels) == 1 else "relay"
        levels.append([Box(relay, relay, kind) for relay in level])
        level = [lower for relay in level for lower in below.get(relay, [])]
    others = [Box(name, name, "aside") for name in daemons if name not in tree and name != owner]
    arrows = [Arrow(relay, parent or MAILBOX, "sent") for relay, parent in tree.items()]
    levels.reverse()
    return Diagram([*levels, others] if others else levels, arrows)


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
