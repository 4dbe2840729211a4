"""Asked: what a lab is to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks.lab.seating import Seating, Shape
from hushcast_analytics.attacks.linkage_attacks import FOLLOWED_WITHIN

Renewal = Literal["once", "same", "fresh"]
Dropping = Literal["none", "silent", "refusing"]


@dataclass(frozen=True)
class Asked:
    """`runs` networks of `relays`, with `topics` of one subscriber each.

    | field | meaning |
    |---|---|
    | `listed` | roots are the subscribers' own relays (paper), else mailboxes |
    | `hosted` | the mailbox is a box at a relay, its host, which stays whichever trees come |
    | `shards` | of equal size, under mailboxes; a topic has one, drawn anew with each tree that is fresh |
    | `shape` | of trees, see `Seating` |
    | `trees` | of a subscription, each over all relays of the topic's shard |
    | `renewal` | instructions come `once`, or in each epoch, down the `same` trees or `fresh` ones |
    | `messages` | for each topic and epoch, dropped at `origins` random relays each |
    | `dropping` | `silent`: watched relays confirm messages and lose them; `refusing`: they confirm none |
    | `scan` | one message more at each relay, by the adversary |
    | `clients` | if there are some, they subscribe and publish; else relays do |
    | `topics_each` | that a subscriber holds |
    | `together` | whose trees are installed at one moment; else at times of their own |
    | `begun_within` | epochs in which persons begin one topic, each on a first device. Of their `topics_each`
    the second stands for the same one on a second device; colluders tell subscriptions apart |
    | `followed_within` | epochs in which the second device begins it, once it was told |
    | `shared` | under one mailbox; else each under one of its own |
    | `one_author` | for all messages of a topic; else another for each |
    | `avoiding` | authors never pick their own relay as origin |
    | `up`, `down` | participants' epochs, in the mean; they are always up if `down` is 0 |

    Churn moves rosters, mailboxes and authors, who publish nothing while they are down; nothing else.
    """

    runs: int
    topics: int
    relays: int
    depth: int
    listed: bool
    seed: int = 1
    shape: Shape = "even"
    trees: int = 1
    epochs: int = 1
    renewal: Renewal = "once"
    messages: int = 0
    origins: int = 1
    dropping: Dropping = "none"
    scan: bool = False
    clients: int = 0
    topics_each: int = 1
    together: bool = False
    shared: bool = False
    one_author: bool = False
    avoiding: bool = False
    up: float = 48.0
    down: float = 0.0
    shards: int = 1
    hosted: bool = False
    begun_within: int = 0
    followed_within: int = FOLLOWED_WITHIN

    def __post_init__(self) -> None:
        """Raise `ValueError` for what does not go together."""
        if self.shards > 1 and (self.listed or self.relays % self.shards):
            raise ValueError("shards divide the relays evenly, and their trees have mailboxes as roots")
        if self.begun_within and (self.topics_each != 2 or self.epochs > 1):
            raise ValueError("two devices of a person have a subscription each, which begins once")
        if self.hosted and (self.listed or self.down):
            raise ValueError(
                "hosts keep boxes, no listed roots; of owners who go see `benchmarks/lab/boxes.py`"
            )

    @property
    def seating(self) -> Seating:
        """Who stands where; a listed root is no seat of its own tree."""
        return Seating(self.spanned - self.listed, self.depth, self.shape, self.hosted)

    @property
    def spanned(self) -> int:
        """Relays that a tree spans: those of one shard."""
        return self.relays // self.shards

    @property
    def people(self) -> int:
        """Relays and clients."""
        return self.relays + self.clients
