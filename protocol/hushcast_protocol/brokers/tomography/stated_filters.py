"""What brokers have stated: which filters each holds, and the crowd of sources behind them there.

A filter counts at a broker that holds it, for the sources for which it or edge brokers below it vouch, as
filters go up. Those for which nobody vouches stand in no order: inventing them moves nobody's neighbours.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from functools import partial

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.broker_tree import BrokerTree
from hushcast_protocol.brokers.clear_words import outside
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.tomography.expiry_queue import ExpiryQueue
from hushcast_protocol.brokers.tomography.statements import Contradiction, Statement, read_statement
from hushcast_protocol.content.topics import Topic

MAX_ROWS_EACH = 4096  # filters that one broker states
MAX_ROWS = 32_768  # of all brokers: with 2 to 18 kB each in the posets, up to 600 MB
MAX_STATED = (
    3600.0  # seconds for which a statement may be valid: brokers that are gone must not count for long
)

VouchedSource = tuple[PublicKey, bytes, bool]
"""A source: who vouches for it, its pseudonym, and whether it is somebody; if not, it is bogus."""
_Place = tuple[PublicKey, Filter]


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    """The statement's."""
    serial: int
    """The row's own, among all brokers'."""
    signed: Signed
    sources: frozenset[VouchedSource]


class StatedFilters:
    """The valid statements of all brokers. `now` is Unix time.

    `cap` is for how many distinct sources on one topic an edge broker may vouch at once.
    """

    def __init__(self, tree: BrokerTree, cap: int) -> None:
        self.tree = tree
        self.cap = cap
        self._up = _ups(tree)
        self.contradictions: dict[PublicKey, Contradiction] = {}
        self._rows: dict[PublicKey, dict[Filter, _Row]] = defaultdict(dict)
        self._held: dict[Filter, set[PublicKey]] = defaultdict(set)
        self._last: dict[PublicKey, tuple[int, int, Signed]] = {}
        self._crowds: dict[PublicKey, Levels] = defaultdict(partial(Levels, is_bounded=True))
        # How many rows of an edge broker's topic each of its pseudonyms stands in; and who uses it.
        self._uses: dict[tuple[PublicKey, Topic], Tally[bytes]] = {}
        self._owners: dict[tuple[Topic, bytes], PublicKey] = {}
        self._expiry: ExpiryQueue[_Place] = ExpiryQueue(self._is_current)
        self._ends_of: dict[Topic, ExpiryQueue[_Place]] = {}
        self._serial = 0
        self.rows = 0
        """Filters stated, of all brokers."""
        self.bogus = 0
        """Bogus sources stated, each at each filter."""

    def hear(self, broker: PublicKey, signed: Signed, epochs: range, now: float) -> Filter:
        """Take a broker's statement, of one of these epochs; return the filter that it is about.

        Raises `Refusal` with the reason, and does not take it then. Of a broker that contradicts itself, all
        is forgotten.

        The reasons: `unknown` broker, `form`, `forged`, `contradicted` (now or before), `stale`, `not-edge`,
        `cap`, `another's` source, `quota`.
        """
        if broker not in self.tree.brokers:
            raise Refusal("unknown")
        if broker in self.contradictions:
            raise Refusal("contradicted")
        statement, given = _read(signed, broker)
        self._check_number(broker, statement, signed)
        if len(statement.sources) < statement.bogus or (statement.sources and not statement.is_held):
            raise Refusal("form")
        if statement.epoch not in epochs or not now < statement.until <= now + MAX_STATED:
            raise Refusal("stale")
        if broker in self._last and self._last[broker][0] != statement.epoch:
            # Pseudonyms of two epochs are not to be counted beside each other: they may be the same clients.
            self.forget(broker)
        self._check_sources(broker, given, statement)
        if statement.is_held:
            self._check_room(broker, given)
        self._last[broker] = statement.epoch, statement.number, signed
        if statement.is_held:
            self._take(broker, given, statement, signed)
        elif given in self._rows[broker]:
            self._drop(broker, given)
        return given

    def use(self, tree: BrokerTree) -> None:
        """Go by a newer tree: what brokers stated that are not in it, or in another role, is forgotten."""
        for key in tuple(self._rows):
            if key not in tree.brokers or tree.brokers[key].role != self.tree.brokers[key].role:
                self.forget(key)
                del self._rows[key]
        self.tree, self._up = tree, _ups(tree)
        self.contradictions = {key: one for key, one in self.contradictions.items() if key in tree.brokers}
        self._crowds.clear()
        for key, rows in self._rows.items():
            for given, row in rows.items():
                for holder in self._holders(key, given):
                    self._crowd(holder, given, row.sources)

    def forget(self, broker: PublicKey) -> set[Topic]:
        """Forget what a broker stated, but not its last number; return the topics that it was about."""
        topics = {given.topic for given in self._rows[broker]}
        for given in tuple(self._rows[broker]):
            self._drop(broker, given)
        return topics

    def is_edge(self, broker: PublicKey) -> bool:
        """Tell whether a broker may vouch for clients of its own."""
        return broker in self.tree.brokers and self.tree.brokers[broker].role == "edge"

    def behind(self, broker: PublicKey, given: Filter) -> Set[Source]:
        """Return the sources (`VouchedSource`) of a filter at a broker: none where it does not hold it."""
        return self.crowd(broker).poset.sources(given)

    def elsewhere(self, broker: PublicKey) -> Callable[[Source], bool]:
        """Return what tells of a source whether its edge broker is neither this broker nor below it."""
        return lambda source: isinstance(source, tuple) and broker not in self._up[source[0]]

    def crowd(self, broker: PublicKey) -> Levels:
        """Return the filters at a listed broker with their sources; who changes them changes them back."""
        return self._crowds[broker]

    def vouched(self, broker: PublicKey, topic: Topic) -> Set[bytes]:
        """Return the pseudonyms that an edge broker vouches for on a topic."""
        return self._uses.get((broker, topic), Tally()).keys()

    def epoch(self, broker: PublicKey) -> int:
        """Return the epoch that a broker stated last, whose pseudonyms it uses now; -1 if none."""
        return self._last[broker][0] if broker in self._last else -1

    def until(self, topic: Topic) -> float:
        """Return when the first of the statements about a topic ends; infinity if there are none."""
        ends = self._ends_of.get(topic)
        return ends.first() if ends is not None else float("inf")

    def deadline(self) -> float:
        """Return when `expire` has something to do next; infinity if never."""
        return self._expiry.first()

    def expire(self, now: float) -> set[Topic]:
        """Forget statements that are not valid any more; return the topics that they were about."""
        topics = set()
        while (place := self._expiry.pop(now)) is not None:
            self._drop(*place)
            topics.add(place[1].topic)
        return topics

    def _check_number(self, broker: PublicKey, statement: Statement, signed: Signed) -> None:
        if broker not in self._last:
            return
        _, last, newest = self._last[broker]
        if statement.number > last:
            return
        known = [newest] if statement.number == last else []
        known += [row.signed for row in self._rows[broker].values() if row.number == statement.number]
        if any(other.body != signed.body for other in known):
            self.contradictions[broker] = Contradiction(known[0], signed)
            self.forget(broker)
            raise Refusal("contradicted")
        raise Refusal("stale")

    def _check_sources(self, broker: PublicKey, given: Filter, statement: Statement) -> None:
        sources = set(statement.sources)
        if len(sources) < len(statement.sources):
            raise Refusal("form")
        if sources and not self.is_edge(broker):
            raise Refusal("not-edge")
        if any(self._owners.get((given.topic, source), broker) != broker for source in sources):
            raise Refusal("another's")
        uses = self._uses.get((broker, given.topic), Tally())
        row = self._rows[broker].get(given)
        leaving = {name for _, name, _ in row.sources if uses[name] == 1} if row is not None else set()
        if len((uses.keys() - leaving) | sources) > self.cap:
            raise Refusal("cap")

    def _check_room(self, broker: PublicKey, given: Filter) -> None:
        rows = self._rows[broker]
        if given not in rows and (len(rows) >= MAX_ROWS_EACH or self.rows >= MAX_ROWS):
            raise Refusal("quota")

    def _take(self, broker: PublicKey, given: Filter, statement: Statement, signed: Signed) -> None:
        real = len(statement.sources) - statement.bogus
        sources = frozenset((broker, name, at < real) for at, name in enumerate(statement.sources))
        before = self._rows[broker].get(given)
        self._serial += 1
        self._rows[broker][given] = _Row(statement.number, self._serial, signed, sources)
        for ends in (self._expiry, self._ends_of.setdefault(given.topic, ExpiryQueue(self._is_current))):
            ends.add(statement.until, self._serial, (broker, given))
        if before is None:
            self.rows += 1
            self._crowd(broker, given, came=self._behind_below(broker, given))
            self._held[given].add(broker)
        self._change(broker, given, before.sources if before is not None else frozenset(), sources)

    def _drop(self, broker: PublicKey, given: Filter) -> None:
        row = self._rows[broker].pop(given)
        self.rows -= 1
        self._change(broker, given, row.sources, frozenset())
        self._held[given].discard(broker)
        self._crowd(broker, given, left=self._behind_below(broker, given))
        if not self._held[given]:
            del self._held[given]
        if self._ends_of[given.topic].first() == float("inf"):
            del self._ends_of[given.topic]

    def _behind_below(self, broker: PublicKey, given: Filter) -> list[VouchedSource]:
        below = [other for other in self._held[given] if other != broker and broker in self._up[other]]
        return [source for other in below for source in self._rows[other][given].sources]

    def _holders(self, broker: PublicKey, given: Filter) -> frozenset[PublicKey]:
        """Return where a filter stands that a broker holds: there, and at those above that hold it, too."""
        return self._up[broker] & self._held[given]

    def _change(
        self,
        broker: PublicKey,
        given: Filter,
        before: frozenset[VouchedSource],
        after: frozenset[VouchedSource],
    ) -> None:
        """A broker vouches for others behind a filter, which count wherever the filter is held."""
        came, left = after - before, before - after
        for holder in self._holders(broker, given):
            self._crowd(holder, given, came, left)
        if came:
            self._uses.setdefault((broker, given.topic), Tally()).update(name for _, name, _ in came)
            self._owners.update(((given.topic, name), broker) for _, name, _ in came)
        if left:
            self._disuse(broker, given.topic, [name for _, name, _ in left])
        self.bogus += sum(not real for *_, real in came) - sum(not real for *_, real in left)

    def _crowd(
        self,
        broker: PublicKey,
        given: Filter,
        came: Iterable[VouchedSource] = (),
        left: Iterable[VouchedSource] = (),
    ) -> None:
        crowd = self._crowds[broker]
        for source in came:
            crowd.insert(given, source)
        for source in left:
            crowd.remove(given, source)

    def _disuse(self, broker: PublicKey, topic: Topic, names: list[bytes]) -> None:
        """A row of this broker's is gone, in which these pseudonyms stood."""
        uses = self._uses.get((broker, topic), Tally())
        uses.subtract(names)
        for name in names:
            if not uses[name]:
                del uses[name], self._owners[topic, name]
        if not uses:
            self._uses.pop((broker, topic), None)

    def _is_current(self, place: _Place, serial: int) -> bool:
        row = self._rows[place[0]].get(place[1])
        return row is not None and row.serial == serial


def _ups(tree: BrokerTree) -> dict[PublicKey, frozenset[PublicKey]]:
    return {key: frozenset((key, *(one.key for one in tree.above(key)))) for key in tree.brokers}


def _read(signed: Signed, broker: PublicKey) -> tuple[Statement, Filter]:
    try:
        statement = read_statement(signed, broker)
        return statement, outside(statement.filter)
    except AuthenticationError:
        raise Refusal("forged") from None
    except PeerError:
        raise Refusal("form") from None
