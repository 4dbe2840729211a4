"""Subscribers come and go at random at edge brokers; what these showed is recounted from their traces alone.

    python tests/testnet/broker_recount.py [EVENTS] [SEED]

runs it for long, with each condition and each way out mixed: 100,000 events unless told otherwise.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, get_args

import trio
import trio.testing

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import helper_folders  # noqa: F401

from exposing import among, behind_outside
from filter_examples import TOPICS, Brute, drawn

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.bogus_filters import bogus_beside
from hushcast_protocol.brokers.clear_words import CoveredFilter, outside
from hushcast_protocol.brokers.edge_subscriptions import MAX_BOGUS
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.frames import AnonymityTerms, decode_filter, decode_shown
from hushcast_protocol.content.topics import Interest
from hushcast_testnet.simulations.broker_members import BrokerLife, BrokersUserLife, BrokersWorld
from hushcast_testnet.simulations.clock_calls import ClockCalls
from hushcast_testnet.simulations.scenario import Scenario

USERS = 10
MOST = 30  # subscriptions at once
BETWEEN = 0.6  # virtual seconds from one event to the next, at most: some meet an advertisement under way
WITHDRAWN_WITHIN = 3.0  # virtual seconds: one answer of the parent is waited for, which comes from the root


async def come_and_go(traces: Path, events: int, seed: int, clock: trio.testing.MockClock) -> None:
    """Have daemons subscribe and unsubscribe, each with terms of its own, and die now and then."""
    random = Random(seed)
    scenario = Scenario(USERS, 1, 1, seed=seed, traces=traces, carrier="brokers", edges=2)
    world = BrokersWorld(scenario, ClockCalls(clock).call_at)
    edges = [world.keys["edge-1"], world.keys["edge-1"], world.keys["edge-2"]]
    users = [BrokersUserLife(world, f"client-{each}", edges[each % 3]) for each in range(USERS)]
    held: list[tuple[BrokersUserLife, Filter]] = []
    async with trio.open_nursery() as nursery:
        for life in [*(BrokerLife(world, keys) for keys in world.brokers), *users]:
            await life.start(nursery)
        for _ in range(events):
            await trio.sleep(random.uniform(0.0, BETWEEN))
            chance = random.random()
            if chance < 0.01:
                life = random.choice(users)
                life.kill()
                await life.start(nursery)
            elif held and chance < len(held) / MOST:
                user, one = held.pop(random.randrange(len(held)))
                nursery.start_soon(user.daemon.service.unsubscribe, one.topic, one.predicate)
            else:
                one = random.choice(held)[1] if held and chance < 0.7 else drawn(random, TOPICS[:2])
                held.append((random.choice(users), one))
                nursery.start_soon(_subscribe, *held[-1], _terms(random))
        await trio.sleep(60.0)
        nursery.cancel_scope.cancel()
    world.close()


async def _subscribe(user: BrokersUserLife, one: Filter, terms: dict[str, Any]) -> None:
    with suppress(Refusal):  # too few stand behind it, or it is held to other terms
        await user.daemon.service.subscribe(Interest(one.topic, one.predicate), terms=terms)


def _terms(random: Random) -> dict[str, Any]:
    return {
        "k": random.choice((1, 2, 3, 3, 4)),
        "condition": random.choice(list(AnonymityCondition)).value,
        "otherwise": random.choice(get_args(Fallback)),
    }


@dataclass
class Recount:
    """What one edge broker had and showed, by its own trace, line for line."""

    there: dict[tuple[str, str], tuple[Filter, AnonymityTerms]] = field(default_factory=dict)
    bogus: dict[tuple[str, str], int] = field(default_factory=dict)
    """Sources behind a subscription that stand for nobody."""
    shown: dict[bytes, Filter] = field(default_factory=dict)
    sunk: dict[bytes, float] = field(default_factory=dict)
    """When each of these that is shown had too few behind it."""
    longest: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    def read(self, lines: Iterable[dict[str, Any]]) -> None:
        """Read a trace; fail where more left the broker than may, or stayed outside."""
        for line in lines:
            self._take(line)
        assert not self.sunk, "at the end something is outside that has too few behind it"

    def _take(self, line: dict[str, Any]) -> None:
        kind = line["kind"]
        if kind == "asked":
            terms = AnonymityTerms(line["k"], AnonymityCondition(line["condition"]), line["otherwise"])
            given = outside(decode_filter(bytes.fromhex(line["filter"])))
            self.there[line["client"], line["name"]] = given, terms
            self.counts[f"{terms.condition.value}, {terms.otherwise}"] += terms.k > 1
        elif kind == "bogus":
            self.bogus[line["client"], line["name"]] = line["sources"]
        elif kind == "ended":
            del self.there[line["client"], line["name"]]
            self.bogus.pop((line["client"], line["name"]), None)
        elif kind == "advertised":
            self._advertised(line)
        else:
            return
        self.counts[kind] += 1
        self._look(line["time"])

    def _advertised(self, line: dict[str, Any]) -> None:
        assert "child" not in line
        for name in map(bytes.fromhex, line["withdraw"]):
            del self.shown[name]
            self.counts["withdrawn"] += 1
            if (since := self.sunk.pop(name, None)) is not None:
                self.longest = max(self.longest, line["time"] - since)
        for each in map(decode_shown, map(bytes.fromhex, line["show"])):
            self.shown[each.name] = outside(each.filter if isinstance(each, CoveredFilter) else each)
            self.counts["shown"] += 1
            assert self._may_be(self._brute(), self.shown[each.name]), "it left with too few behind it"

    def _look(self, now: float) -> None:
        brute = self._brute()
        for name, shown in self.shown.items():
            if self._may_be(brute, shown):
                self.sunk.pop(name, None)  # enough came before it was withdrawn
            else:
                since = self.sunk.setdefault(name, now)
                assert now - since < WITHDRAWN_WITHIN, "what sank was not withdrawn"

    def _brute(self) -> Brute:
        brute = Brute()
        for (client, name), (one, _) in self.there.items():
            brute.insert(one, (client, self.there[client, name][1].k))
        return brute

    def _may_be(self, brute: Brute, shown: Filter) -> bool:
        """Tell whether the terms of anybody whose messages it brings allow a filter to be outside."""
        for name, (one, terms) in self.there.items():
            if shown == one and terms.k == 1:
                return True
            if terms.k > 1 and terms.otherwise == "bogus":
                beside = bogus_beside(one, [terms.condition])
                assert self.bogus.get(name, 0) <= MAX_BOGUS
                is_its = beside is not None and shown in (one, *beside)
                if is_its and self._own(name) + self.bogus.get(name, 0) >= terms.k:
                    return True
                continue
            stands_in = terms.otherwise == "generalise" and terms.k > 1 and covers(shown, one)
            if shown != one and not stands_in:
                continue
            if self._level(brute, name, shown) >= terms.k:
                return True
        return False

    def _level(self, brute: Brute, name: tuple[str, str], shown: Filter) -> int:
        """Among those who count for it: who ask for nothing or the same, or to hide among no more."""
        one, terms = self.there[name]
        own = {client for (client, _), held in self.there.items() if held == (one, terms)}
        open_ones = among(brute, lambda at, asker: asker[1] == 1 or (at == one and asker[0] in own))
        hiding = among(brute, lambda at, asker: asker[1] <= terms.k)
        first = len(dict(behind_outside(open_ones, one, shown, terms.condition)))
        hidden = {client for client, k in behind_outside(hiding, one, shown, terms.condition) if k > 1}
        return max(first, len(hidden) if len(hidden) >= terms.k else 0)

    def _own(self, name: tuple[str, str]) -> int:
        """How many stand behind a subscription's filter outside, where they count beside bogus sources."""
        one, terms = self.there[name]
        if terms.condition in (AnonymityCondition.SUCCESSOR, AnonymityCondition.IMMEDIATE_SUCCESSOR):
            return 0
        same = [
            client
            for (client, _), (other, asked) in self.there.items()
            if other == one and (asked == terms or asked.k == 1)
        ]
        return len(set(same))


def play(traces: Path, events: int, seed: int) -> Recount:
    """Have subscribers come and go, and recount; return the counts of all edge brokers together."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(come_and_go, traces, events, seed, clock, clock=clock)
    whole = Recount()
    for path in sorted(traces.glob("edge-*.observations.jsonl")):
        one = Recount()
        with path.open() as file:
            one.read(map(json.loads, file))
        whole.counts += one.counts
        whole.longest = max(whole.longest, one.longest)
    return whole


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as folder:
        found = play(Path(folder), count, seed)
    print(f"{count:,} events, longest withdrawal {found.longest:.2f} s: {dict(found.counts)}")
