"""Targets: filters that come and go, beside comparing all pairs; and lines of subscriptions from a file."""

from __future__ import annotations

import json
from random import Random

from broker_moves import compare
from filter_examples import LABELS, TOPICS, WIDE, Brute
from fuzzing import Script, Target, scripts
from mutating import mutate_text

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter, Side, covers, merge
from hushcast_protocol.brokers.generalisation import generalise
from hushcast_protocol.brokers.subscription_lines import read_subscription
from hushcast_protocol.content.attributes import Attribute, Label
from hushcast_protocol.content.topics import Topic, make_topic, write_link

MOST = 72  # bytes of a script: some twenty filters, of which all pairs are compared
_PLACES = (*TOPICS, WIDE)


def _side(script: Script, attribute: Attribute) -> Side:
    choice = script.number()
    if choice % 3 == 0:
        return None
    if isinstance(attribute, Label):
        return LABELS[choice % len(LABELS)]
    # The ends of the grid and places close together are as likely as any other.
    low, high = sorted(at * attribute.last // 15 for at in (choice // 16, choice % 16))
    return low, high


def _filter(script: Script, topic: Topic) -> Filter:
    return Filter(topic, tuple(_side(script, attribute) for attribute in topic.attributes))


def _poset(data: bytes) -> None:
    script = Script(data, MOST)
    levels, brute = Levels(), Brute()
    topics = _PLACES if script.number() % 4 == 0 else (script.choose(_PLACES),)
    while script:
        move = script.number()
        held = [(one, source) for one, sources in brute.held.items() for source in sorted(sources)]
        if held and move % 3 == 0:
            one, source = script.choose(held[-256:])
            went = {home.remove(one, source) for home in (levels, brute)}
            assert len(went) == 1
        else:
            one, source = _filter(script, script.choose(topics)), move % 5
            came = {home.insert(one, source) for home in (levels, brute)}
            assert len(came) == 1
        if move % 16 == 0:
            compare(levels, brute)
    compare(levels, brute)
    for one in list(brute.held)[:1]:
        _show(levels, one, list(AnonymityCondition)[len(data) % len(AnonymityCondition)], len(data) % 4 + 1)
        assert covers(merge(one, one).filter, one)


def _show(levels: Levels, one: Filter, condition: AnonymityCondition, k: int) -> None:
    shown = generalise(levels, one, condition, k)
    if levels.level(one, condition) >= k:
        assert shown is not None
        assert shown.filter == one
    elif shown is not None:
        assert covers(shown.filter, one)
        assert shown.filter != one
        assert shown.added >= 0
        if condition is not AnonymityCondition.SOURCE:
            assert levels.reaches(shown.filter, condition, k, frozenset(levels.poset.sources(one)))


def _line(data: bytes) -> None:
    for line in data.splitlines():
        source, one = read_subscription(line, {})
        assert source
        assert len(one.sides) == len(one.topic.attributes)


def _lines() -> list[bytes]:
    link = write_link(make_topic("fires", ["kind", "lat:-90..90:0.001"]))
    lines = [
        {"source": "a", "topic": "news"},
        {"source": "a", "topic": link, "where": "lat in [60, 61], kind = fire"},
        {"source": "b", "topic": "t", "attributes": ["x:0..9", "kind"], "where": 'kind = "a", x = 1'},
        {"source": "", "topic": 1, "where": None, "attributes": [1]},
    ]
    return [json.dumps(line).encode() for line in lines]


def _moves() -> list[bytes]:
    random = Random("filters")
    return [*scripts(20, MOST), *(bytes(random.choices(range(8), k=MOST)) for _ in range(6))]


TARGETS = [
    Target("poset", _poset, _moves, weight=2),
    Target("subscription-line", _line, _lines, (UsageError,), mutate_text, weight=5),
]
