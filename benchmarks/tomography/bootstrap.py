"""The bootstrap problem: who may show a filter first? And what the ways out of it cost.

Nothing is shown at the beginning. In each round every edge broker asks about all that its clients want and
that is not shown, and every inner broker about all that it holds; then all who heard yes show theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.tomography.world import CALENDAR, NOW, World, asked, question
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.bogus_filters import BELOW, bogus_beside
from hushcast_protocol.brokers.filters import Filter, Sides, covers, holds
from hushcast_protocol.brokers.tomography.broker_statements import BogusSource, BrokerStatements
from hushcast_protocol.brokers.tomography.filter_probe import FilterProbe
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion
from hushcast_protocol.brokers.tomography.joint_judgement import judge_together
from hushcast_protocol.brokers.tomography.judgement import judge, real
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters

K = 5
STEPS = 5  # of a probe
MAX_ROUNDS = 30
MESSAGES = 100  # of which excess is counted
CAP = 256

_Wish = tuple[PublicKey, Filter, int, tuple[Hashable, ...]]
"""A filter that an edge broker would show, the k asked for, and the clients behind it."""


@dataclass
class _State:
    """What is shown by whom, for which clients; and what the service knows of it."""

    world: World
    condition: AnonymityCondition
    shown: dict[PublicKey, dict[Filter, set[Hashable]]] = field(default_factory=lambda: defaultdict(dict))
    told: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    nobodies: int = 0

    def __post_init__(self) -> None:
        self.gathered = StatedFilters(self.world.tree, CAP)
        self._stating = {
            key: BrokerStatements(self.world.key_of(key), self.world.random.randbytes, 0, cap=CAP, life=3600)
            for key in self.world.tree.brokers
        }
        for stating in self._stating.values():
            stating.largest_k = CAP
        self._held: dict[PublicKey, set[Filter]] = defaultdict(set)

    def ask(
        self, origin: PublicKey, given: Filter, k: int, clients: Iterable[Hashable] = ()
    ) -> ComparableQuestion:
        """A question about the hop to the parent."""
        self.told["questions"] += 1
        names = self._stating[origin].names(given, clients)
        return asked(
            self.gathered, question(origin, self.world.parent[origin], given, k, self.condition, names)
        )

    def wants(self) -> dict[PublicKey, dict[Filter, list[Hashable]]]:
        """What the clients of each edge broker want."""
        found: dict[PublicKey, dict[Filter, list[Hashable]]] = {edge: {} for edge in self.world.edges}
        for client, filters in enumerate(self.world.wanted):
            for given in filters:
                behind = found[self.world.home[client]].setdefault(given, [])
                if client not in behind:
                    behind.append(client)
        return found

    def held(self, broker: PublicKey) -> set[Filter]:
        """What is shown to an inner broker or the root."""
        below = [child for child, parent in self.world.parent.items() if parent == broker]
        return {given for child in below for given in self.shown[child]}

    def state(self) -> None:
        """Let all brokers state what they show and hold, and note how much that is."""
        self.tell(self._stating)
        rows = sum(len(self.held(key)) for key in (self.world.root, *self.world.inner))
        bogus = self.bogus()
        self.told["rows, most"] = max(self.told["rows, most"], rows)
        self.told["rows, at the end"] = rows
        self.told["bogus sources, most"] = max(self.told["bogus sources, most"], bogus)
        self.told["bogus sources, at the end"] = bogus

    def tell(self, keys: Iterable[PublicKey]) -> None:
        """Let some brokers state what they show and hold."""
        epoch = CALENDAR.epoch(NOW)
        for key in keys:
            stating = self._stating[key]
            is_edge = key in self.world.edges
            held = set(self.shown[key]) if is_edge else self.held(key)
            for given in self._held[key] - held:
                stating.drop(given)
            for given in held if is_edge else held - self._held[key]:
                stating.hold(given, sorted(self.shown[key][given], key=repr) if is_edge else ())
            self._held[key] = held
            for signed in stating.due(epoch, NOW):
                self.gathered.hear(key, signed, range(epoch, epoch + 1), NOW)

    def bogus(self) -> int:
        """Bogus sources that edge brokers show."""
        behind = [who for edge in self.world.edges for who in self.shown[edge].values()]
        return sum(isinstance(one, BogusSource) for clients in behind for one in clients)

    def inner_round(self) -> bool:
        """Let inner brokers show what they may, and withdraw what was withdrawn; tell whether any did."""
        is_changed = False
        for key in self.world.inner:
            held = self.held(key)
            for given in set(self.shown[key]) - held:
                del self.shown[key][given]
                is_changed = True
            for given in held - set(self.shown[key]):
                if judge(self.gathered, self.ask(key, given, K)):
                    self.shown[key][given] = set()
                    is_changed = True
        return is_changed


_Round = Callable[[_State], bool]


def run(world: World) -> dict[str, Any]:
    """Try each way out under each condition."""
    ways: dict[str, Callable[[], _Round]] = {
        "strict": lambda: _strict,
        "bogus": lambda: _bogus,
        "probing": lambda: _Probing(False),
        "together": lambda: _together,
        "probing together": lambda: _Probing(True),
    }
    found: dict[str, Any] = {}
    for condition in AnonymityCondition:
        found[str(condition)] = {name: _play(_State(world, condition), way()) for name, way in ways.items()}
    return {"k": K, "wanted": _wanted(world), "ways": found}


def _play(state: _State, turn: _Round) -> dict[str, Any]:
    rounds = 0
    is_moving = True
    while is_moving and rounds < MAX_ROUNDS:
        rounds += 1
        is_moving = turn(state)
        state.state()
        is_moving = state.inner_round() or is_moving
        state.state()
    return {"rounds": rounds if not is_moving else f"{rounds}, not at rest", **state.told, **_outcome(state)}


def _strict(state: _State) -> bool:
    wishes = _open(state)
    yes = [wish for wish in wishes if judge(state.gathered, state.ask(*wish))]
    return _show(state, yes)


def _together(state: _State) -> bool:
    wishes = _open(state)
    said = judge_together(state.gathered, [state.ask(*wish) for wish in wishes])
    return _show(state, [wish for wish, is_yes in zip(wishes, said, strict=True) if is_yes])


def _bogus(state: _State) -> bool:
    """Show what may not be shown, with what stands for nobody beside it; take back what is not needed."""
    is_changed = False
    for edge, given, k, clients in _open(state):
        if judge(state.gathered, state.ask(edge, given, k, clients)):
            placed: dict[Filter, int] = {}
        else:
            beside = bogus_beside(given, [state.condition])
            if beside is None:
                state.told["cannot be helped"] += 1
                continue
            is_below = state.condition in BELOW
            placed = {given: 0 if is_below else max(0, k - len(clients))}
            placed |= {one: k if is_below else 1 for one in beside if one is not None}
        is_changed = True
        state.shown[edge].setdefault(given, set()).update(clients)
        for one, number in placed.items():
            behind = state.shown[edge].setdefault(one, set())
            behind.update(BogusSource(state.nobodies + at) for at in range(number))
            state.nobodies += number
        state.tell((edge, state.world.parent[edge]))  # the next to ask finds these there
    return _take_back(state) or is_changed


def _take_back(state: _State) -> bool:
    """Under `source`, take away bogus sources that enough real ones have made needless."""
    if state.condition is not AnonymityCondition.SOURCE:
        return False
    is_changed = False
    for edge in state.world.edges:
        for given, behind in state.shown[edge].items():
            nobodies = {one for one in behind if isinstance(one, BogusSource)}
            at = state.world.parent[edge]
            if nobodies and len(real(state.gathered.behind(at, given))) >= K:
                behind -= nobodies
                is_changed = True
    return is_changed


class _Probing:
    """Each wish on its own way from the whole topic down, alone or with all that ask for the same."""

    def __init__(self, together: bool) -> None:
        self._together = together
        self._probes: dict[tuple[PublicKey, Filter], FilterProbe] = {}

    def __call__(self, state: _State) -> bool:
        wants = state.wants()
        steps: dict[tuple[PublicKey, Filter, int], list[FilterProbe]] = defaultdict(list)
        clients: dict[tuple[PublicKey, Filter, int], set[Hashable]] = defaultdict(set)
        for edge, wanted in wants.items():
            for given, behind in wanted.items():
                probe = self._probes.setdefault((edge, given), FilterProbe(given, K, STEPS))
                if probe.next is not None:
                    steps[edge, *probe.next].append(probe)
                    clients[edge, *probe.next].update(behind)
        keys = list(steps)
        questions = [state.ask(*key, sorted(clients[key], key=repr)) for key in keys]
        if self._together:
            said = judge_together(state.gathered, questions)
        else:
            said = [judge(state.gathered, one) for one in questions]
        for key, is_yes in zip(keys, said, strict=True):
            for probe in steps[key]:
                probe.heard(is_yes)
        before = {edge: dict(shown) for edge, shown in state.shown.items() if edge in wants}
        self._show(state, wants)
        return before != {edge: dict(shown) for edge, shown in state.shown.items() if edge in wants}

    def _show(self, state: _State, wants: dict[PublicKey, dict[Filter, list[Hashable]]]) -> None:
        for edge, wanted in wants.items():
            state.shown[edge] = {}
            for given, behind in wanted.items():
                shown = self._probes[edge, given].shown
                if shown is not None:
                    state.shown[edge].setdefault(shown, set()).update(behind)


def _open(state: _State) -> list[_Wish]:
    """What edge brokers want to show and do not."""
    return [
        (edge, given, K, tuple(clients))
        for edge, wanted in state.wants().items()
        for given, clients in wanted.items()
        if given not in state.shown[edge]
    ]


def _show(state: _State, wishes: list[_Wish]) -> bool:
    for edge, given, _, clients in wishes:
        state.shown[edge][given] = set(clients)
    return bool(wishes)


def _wanted(world: World) -> int:
    return sum(map(len, _State(world, AnonymityCondition.SOURCE).wants().values()))


def _outcome(state: _State) -> dict[str, float]:
    """What is shown at the end, at what level, and what it brings that nobody wanted."""
    wants, exact, wider, low = state.wants(), 0, 0, 0
    for edge, wanted in wants.items():
        shown = state.shown[edge]
        exact += sum(given in shown for given in wanted)
        wider += sum(given not in shown and any(covers(one, given) for one in shown) for given in wanted)
        crowd = state.gathered.crowd(state.world.parent[edge])
        for given, behind in shown.items():
            if all(isinstance(one, BogusSource) for one in behind):
                continue
            low += len(real(set().union(*crowd.behind(given, state.condition)))) < K
    came, useful, all_wanted = _messages(state, wants)
    return {
        "shown as wanted": exact,
        "shown wider": wider,
        "shown with fewer than k real": low,
        "shown to the root": len(state.held(state.world.root)),
        "messages wanted": all_wanted,
        "of these arrive": useful,
        "arrive unwanted": came - useful,
    }


def _messages(state: _State, wants: dict[PublicKey, dict[Filter, list[Hashable]]]) -> tuple[int, int, int]:
    came = useful = all_wanted = 0
    for near, point in state.world.messages(MESSAGES):
        for edge in state.world.edges:
            arrives = _matches(state.shown[edge], near, point)
            is_wanted = _matches(wants[edge], near, point)
            came += arrives
            useful += arrives and is_wanted
            all_wanted += is_wanted
    return came, useful, all_wanted


def _matches(filters: Iterable[Filter], near: Filter, point: Sides) -> bool:
    return any(one.topic is near.topic and holds(one.sides, point) for one in filters)
