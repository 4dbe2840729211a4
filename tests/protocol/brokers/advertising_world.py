"""A broker and its parent, moved by numbers from a script: what is confirmed is routed, whatever breaks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

from broker_examples import KEY, TOPIC

from hushcast_protocol.brokers.child_advertisements import ChildAdvertisements
from hushcast_protocol.brokers.clear_words import outside, shown
from hushcast_protocol.brokers.filter_routes import FilterRoutes
from hushcast_protocol.brokers.filters import Filter, Side, covers
from hushcast_protocol.brokers.items import ItemChanges, of_roots
from hushcast_protocol.brokers.parent_table import ParentTable, SentAdvertisement

CHILD = b"c" * 32
SOURCES = (b"1" * 32, b"2" * 32)
RANGES: tuple[Side, ...] = (None, (0, 15), (0, 7), (4, 9), (5, 6), (12, 15))
FILTERS = [
    outside(shown(KEY, Filter(TOPIC, (kind, side)))) for kind in (None, "fire", "flood") for side in RANGES
]


T = TypeVar("T")


def all_of(work: Generator[object, None, T]) -> T:
    """Do all the pieces of some work at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


class World:
    def __init__(self, pick: Callable[[int], int]) -> None:
        """`pick(n)` chooses from 0 to n - 1."""
        self.pick = pick
        self.routes = FilterRoutes()
        self.upward = ParentTable()
        self.parent = ChildAdvertisements()
        self.since: dict[tuple[bytes, bytes], tuple[Filter, int]] = {}  # by source and name, with the version
        self.is_linked = False
        self.to_parent: deque[SentAdvertisement] = deque()
        self.answers: deque[bool] = deque()
        self.batch: list[bool | None] = []
        self.pause = False
        self.has_more = False
        self.comparing: Iterator[None] = iter(())

    def ask(self) -> None:
        source, name = SOURCES[self.pick(2)], bytes([self.pick(8)]) * 16
        given = FILTERS[self.pick(len(FILTERS))]
        is_same = self.routes.of(source).get(name) == given
        self.routes.put(source, name, given)
        version = self.show()
        if not is_same:
            self.since[source, name] = given, version
        self.say()

    def take_back(self) -> None:
        if self.since:
            source, name = sorted(self.since)[self.pick(len(self.since))]
            self.routes.take(source, name)
            del self.since[source, name]
            self.show()
            self.say()

    def drop(self) -> None:
        source = SOURCES[self.pick(2)]
        while self.routes.drop(source, 1):
            pass
        self.since = {key: value for key, value in self.since.items() if key[0] != source}
        self.show()
        self.say()

    def show(self) -> int:
        """Show some of what changed among the roots."""
        changes = of_roots(self.routes.take_changes())
        self.has_more = changes.has_more
        return self.upward.change(changes, self.routes)

    def show_rest(self) -> None:
        if self.has_more:
            self.show()
            self.say()

    def compare(self) -> None:
        """Go on comparing what the parent has, on a link that has just opened."""
        if next(self.comparing, True):
            self.comparing = iter(())
            self.say()

    def link(self) -> None:
        if self.is_linked:
            self.upward.unlinked()
        self.to_parent.clear()
        self.answers.clear()
        self.batch = []
        self.is_linked, self.pause = True, False
        self.comparing = self.upward.linked(all_of(self.parent.begin(CHILD)))
        self.compare()

    def unlink(self) -> None:
        if self.is_linked:
            self.is_linked, self.comparing = False, iter(())
            self.upward.unlinked()

    def say(self) -> None:
        if self.is_linked and not self.pause and (batch := self.upward.next()):
            assert not self.batch, "one batch is under way at a time"
            self.to_parent += batch
            self.batch = [None] * len(batch)

    def hear(self, refuses: bool = False) -> None:
        """The parent takes the next advertisement, or has no room for it."""
        if self.is_linked and self.to_parent:
            said = self.to_parent.popleft()
            if refuses:
                self.answers.append(False)
                return
            for _ in self.parent.take(CHILD, said.frame(1)):
                pass
            self.answers.append(True)

    def refuse(self) -> None:
        if self.pick(3) == 0:
            self.hear(refuses=True)

    def answer(self) -> None:
        if not (self.is_linked and self.answers):
            return
        self.batch[self.batch.index(None)] = self.answers.popleft()
        if None not in self.batch:
            is_accepted = all(self.batch)
            self.batch = []
            self.upward.answered(is_accepted)
            self.pause = not is_accepted
            self.say()

    def retry(self) -> None:
        self.pause = False
        self.say()

    def lose(self) -> None:
        """The parent loses its disk, and with it the link: what was confirmed is not any more."""
        self.unlink()
        if self.pick(4) == 0:
            self.parent = ChildAdvertisements()
            self.since = {key: (given, self.upward.version + 1) for key, (given, _) in self.since.items()}
            self.upward.change(ItemChanges((), ()))

    def check(self) -> None:
        assert self.upward.confirmed <= self.upward.version
        there = list(self.parent.routes.of(CHILD).values())
        for given, version in self.since.values():
            if version <= self.upward.confirmed:
                assert any(covers(wide, given) for wide in there), "what is confirmed is routed"

    def settle(self) -> None:
        """From now on nothing goes wrong: the parent has all that nothing covers, and no more."""
        self.link()
        for _ in range(100):
            self.show_rest()
            self.compare()
            self.retry()
            self.hear()
            self.answer()
            self.check()
        assert self.upward.confirmed == self.upward.version
        roots = dict(self.parent.routes.of(CHILD))
        assert set(roots) == set(self.upward.shown)
        held = {given for given, _ in self.since.values()}
        assert set(roots.values()) == {
            one for one in held if not any(other != one and covers(other, one) for other in held)
        }

    def moves(self) -> list[Callable[[], None]]:
        often = [self.ask, self.ask, self.take_back, self.hear, self.answer, self.hear, self.answer]
        often += [self.show_rest, self.compare]
        return 3 * often + [self.drop, self.link, self.unlink, self.refuse, self.retry, self.lose]


def play(pick: Callable[[int], int], more: Callable[[], bool]) -> None:
    """Let things happen for as long as the script has `more`, and then come to rest."""
    world = World(pick)
    while more():
        world.moves()[pick(len(world.moves()))]()
        world.check()
    world.settle()
