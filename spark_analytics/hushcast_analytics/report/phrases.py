"""Phrases: what each attack tries and against which claim, shares and counts as people read them."""

from __future__ import annotations

from dataclasses import dataclass

GOALS = {
    "publisher": "who published",
    "subscriber": "who subscribes to a topic",
    "link": "which topics one subscriber has",
    "subscription": "what a participant subscribes to",
}
"""What an attack may take from people, in the order of the report."""

SUBJECTS = {
    "message": "who published a message",
    "author": "who writes on a topic",
    "topic": "who subscribes to a topic",
    "link": "which topics one subscriber has",
    "participant": "what a participant subscribes to",
}
"""What the trials are about that have one chance together."""

TARGETS = {"publisher": "publisher", "subscriber": "subscriber", "link": "topic", "subscription": "topic"}
"""What the right answer is, by goal."""

CLAIMS = {
    "publisher": "publisher anonymity (VB §3), no better than one of all honest participants",
    "subscriber": "topic-subscriber anonymity (VB §3), no better than a guess among all participants",
    "link": "no part of VB's definitions: a subscriber's topics should not tell of each other",
    "subscription": "subscription anonymity (VB §3), no better than a guess among all topics",
}


@dataclass(frozen=True)
class AttackPhrases:
    """What an attack goes by, and the row of the threat model's table that answers it, if there is one."""

    tries: str
    row: int | None = None


ATTACKS = {
    "first-spy": AttackPhrases("names the relay from which a colluder had a message first"),
    "origin-choice": AttackPhrases("names the relay at which an author's messages never enter", 10),
    "timing": AttackPhrases("names who was listed whenever an author's messages entered"),
    "parent-of-interior": AttackPhrases("names the next hop of colluders that have children in a tree", 1),
    "install-depth": AttackPhrases("names the next hop of a colluder that was instructed from outside", 1),
    "trail-popcount": AttackPhrases("names the next hop of the colluder that saw the longest ways", 1),
    "predecessor": AttackPhrases("names the next hop that comes again, tree after tree", 1),
    "traffic-share": AttackPhrases("tells a colluder's depth by its share of a topic's messages", 1),
    "trained": AttackPhrases("weighs all signs of a tree by what they meant on other topics", 1),
    "active-scan": AttackPhrases("drops a message at every relay and watches which way it takes", 1),
    "presence": AttackPhrases("compares when a mailbox is up with when relays are listed", 3),
    "box-presence": AttackPhrases(
        "compares when an owner is attached to its host with when relays were there", 3
    ),
    "detach": AttackPhrases("names relays that went when an owner's link to its host ended", 3),
    "renewal-times": AttackPhrases("takes trees installed at one moment for one subscriber's"),
    "shared-mailbox": AttackPhrases("takes trees with one mailbox for one subscriber's"),
    "second-device": AttackPhrases("takes what begins within two days of another for a second device's"),
    "survivors": AttackPhrases("takes boxes that attach and are left at one moment for one owner's"),
    "dictionary": AttackPhrases("tests guessed topics against the trees above which somebody stands", 4),
    "statistical-disclosure": AttackPhrases("finds the topic of which more flows to somebody than to others"),
}
"""By the names of the catalogue; a test compares."""


def percent(share: float) -> str:
    """Return a share in percent, to two digits or to the whole."""
    value = 100 * share
    digits = 0 if value >= 10 or value == 0 else 1 if value >= 1 else 2
    if 0 < value < 0.005:
        return "below 0.01 %"
    return f"{f'{value:.{digits}f}'.removesuffix('.0')} %"


def counted(number: int, noun: str) -> str:
    """Return `1 trial`, `2,000 trials`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def times(ratio: float) -> str:
    """Return how many times, to two digits or to the whole."""
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


def colluding(row: dict[str, object]) -> str:
    """Return who colluded: `50 of 500 relays`, and subscribers if some did.

    The share where the number is not known.
    """
    share, relays, users = float(str(row["colluding"])), row.get("relays"), row.get("users")
    besides = f" and {counted(users, 'subscriber')}" if isinstance(users, int) and users else ""
    if not isinstance(relays, int):
        return f"{percent(share)} of the relays{besides}"
    return f"{int(share * relays):,} of {counted(relays, 'relay')} ({percent(share)}){besides}"
