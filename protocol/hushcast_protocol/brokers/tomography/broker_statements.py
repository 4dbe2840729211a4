"""What a broker states: a pseudonym for each client, filters as they come and go, and silence where possible.

A broker keeps silent about further sources of a filter for which it has already stated as many as the
largest k that anybody asks for (Tarkoma and Prehofer §7).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set
from dataclasses import dataclass, field

from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.brokers.clear_words import from_outside
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.tomography.largest_k import LEAST_K
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD, Statement, state
from hushcast_protocol.content.topics import Topic

Client = Hashable
"""A client of this broker's, however it tells them apart."""
PSEUDONYM = 16  # bytes
_LONG_AGO = 1.0  # Unix time; not 0, as what was stated is to be taken back when it goes


@dataclass(frozen=True, slots=True)
class BogusSource:
    """Who is behind a bogus filter: a number among those of this broker."""

    number: int


@dataclass(slots=True)
class _Row:
    clients: dict[Client, None] = field(default_factory=dict)
    stated: tuple[Client, ...] = ()
    until: float = 0.0
    """When what was stated is over; 0: nothing was."""


class BrokerStatements:
    """Filters that a broker holds, and those of them whose subscribers are its own clients.

    `now` is Unix time. `number` is to be above all numbers of this broker's statements before: Unix time in
    milliseconds is, if no more than a thousand a second are made. `cap` is for how many clients on one
    topic it may vouch; beyond, those who came first count. A statement is valid for `life` seconds.
    """

    def __init__(self, seed: Seed, randomness: Randomness, number: int, *, cap: int, life: float) -> None:
        self.largest_k = LEAST_K
        self._seed = seed
        self._randomness = randomness
        self._number = number
        self._cap = min(cap, MAX_CROWD)
        self._life = life
        self._epoch = -1
        self._rows: dict[Filter, _Row] = {}
        self._gone: dict[Filter, None] = {}
        self._taken_back: dict[Filter, float] = {}  # when what was stated before would have been over
        self._asked: dict[int, tuple[Topic, frozenset[Client]]] = {}
        self._names: dict[Topic, dict[Client, bytes]] = {}

    def hold(self, given: Filter, clients: Iterable[Client]) -> None:
        """Hold a filter, with these clients of its own behind it: all of them, in the order they came."""
        row = self._rows.setdefault(given, _Row())
        row.clients = dict.fromkeys(clients)
        self._gone.pop(given, None)
        self._taken_back.pop(given, None)

    def drop(self, given: Filter) -> None:
        """Hold a filter no more."""
        row = self._rows.pop(given, None)
        if row is not None and row.until:
            self._gone[given] = None

    def names(self, given: Filter, clients: Iterable[Client]) -> tuple[bytes, ...]:
        """Return the pseudonyms of clients behind a filter, to be named in a question before it is held."""
        chosen = self._chosen(given, _Row(dict.fromkeys(clients)))
        return tuple(self._name(given.topic, client) for client in chosen if not _is_nobody(client))

    def ask(self, number: int, given: Filter, clients: Iterable[Client]) -> dict[Client, bytes]:
        """Name clients in a question with this number, as `names` does; their names stay until `forget`."""
        row = self._rows.get(given, _Row())
        chosen = self._chosen(given, _Row(dict.fromkeys(clients), row.stated))
        named = {client: self._name(given.topic, client) for client in chosen}
        self._asked[number] = given.topic, frozenset(named)
        return named

    def forget(self, number: int) -> None:
        """A question is asked no more."""
        self._asked.pop(number, None)

    def filters(self) -> Set[Filter]:
        """Return the filters that are held; not to be kept, as it changes."""
        return self._rows.keys()

    def again(self) -> None:
        """State all anew when it is due next: the service may have forgotten it, or never heard."""
        self._gone.update(dict.fromkeys(self._taken_back))
        self._taken_back.clear()
        for row in self._rows.values():
            row.until = min(row.until, _LONG_AGO)

    def due(self, epoch: int, now: float) -> list[Signed]:
        """Return what is to be stated now: what is new, what has changed, what is over soon."""
        if epoch > self._epoch:
            self._epoch = epoch
            self._names.clear()
            for row in self._rows.values():
                row.until = 0.0
        gone, self._gone = self._gone, {}
        self._taken_back = {given: until for given, until in self._taken_back.items() if until > now}
        self._taken_back.update(dict.fromkeys(gone, now + self._life))
        made = [self._make(given, None, now) for given in gone]
        self._forget_names()
        for given, row in self._rows.items():
            if self._is_due(given, row, now):
                row.stated = self._chosen(given, row)
                row.until = now + self._life
                made.append(self._make(given, row, now))
        return made

    def deadline(self) -> float:
        """Return when `due` has statements to renew next; infinity if it has none."""
        return min((row.until - self._life / 2 for row in self._rows.values()), default=float("inf"))

    def _is_due(self, given: Filter, row: _Row, now: float) -> bool:
        if now >= row.until - self._life / 2:
            return True
        still = [client for client in row.stated if client in row.clients]
        if len(still) >= self.largest_k:
            return False
        return set(self._chosen(given, row)) != set(row.stated)

    def _chosen(self, given: Filter, row: _Row) -> tuple[Client, ...]:
        """Return the clients to be named: those named already first, as many as count."""
        still = [client for client in row.stated if client in row.clients]
        order = dict.fromkeys((*still, *row.clients))
        names = self._names.setdefault(given.topic, {})
        room = self._cap - len(names)
        chosen: list[Client] = []
        for client in order:
            if len(chosen) >= min(self.largest_k, MAX_CROWD):
                break
            if client in names:
                chosen.append(client)
            elif room > 0:
                self._name(given.topic, client)
                room -= 1
                chosen.append(client)
        return tuple(chosen)

    def _name(self, topic: Topic, client: Client) -> bytes:
        names = self._names.setdefault(topic, {})
        if client not in names:
            names[client] = self._randomness(PSEUDONYM)
        return names[client]

    def _forget_names(self) -> None:
        """Let go the names of clients that have left their topic: others may be named in their place."""
        used: dict[Topic, set[Client]] = {topic: set() for topic in self._names}
        for given, row in self._rows.items():
            used.setdefault(given.topic, set()).update(row.clients, row.stated)
        for topic, clients in self._asked.values():
            used.setdefault(topic, set()).update(clients)
        for topic, names in tuple(self._names.items()):
            for client in names.keys() - used[topic]:
                del names[client]
            if not names:
                del self._names[topic]

    def _make(self, given: Filter, row: _Row | None, now: float) -> Signed:
        self._number += 1
        stated = sorted(row.stated, key=_is_nobody) if row is not None else []
        until = int(now + self._life)
        return state(
            self._seed,
            Statement(
                self._seed.public(),
                self._epoch,
                self._number,
                from_outside(given),
                row is not None,
                tuple(self._name(given.topic, client) for client in stated),
                sum(map(_is_nobody, stated)),
                until,
            ),
        )


def _is_nobody(client: Client) -> bool:
    return isinstance(client, BogusSource)
