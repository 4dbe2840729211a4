"""Targets: rules, questions and vocabularies as people write them, and reservations that come and go."""

from __future__ import annotations

import json
from random import Random

from fuzzing import Script, Target, scripts
from mutating import mutate_text
from purposing import World

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.topics.topic_filters import is_filter
from hushcast_protocol.purposes.clauses import filter_problem
from hushcast_protocol.purposes.filter_reach import FilterReach
from hushcast_protocol.purposes.filter_spelling import filter_of
from hushcast_protocol.purposes.purpose_names import ancestors, is_purpose
from hushcast_protocol.purposes.rule_files import (
    QUESTION_EXAMPLE,
    RULES_EXAMPLE,
    PurposeQuestion,
    read_question,
    read_rules,
    read_topic,
)
from hushcast_protocol.purposes.vocabulary import MAX_PURPOSES, read_vocabulary, shipped

MOST = 300  # bytes of a script: some forty changes and questions


def _rules(data: bytes) -> None:
    """What is taken answers any question, and allows no purpose that is prohibited for a wider filter."""
    rules = read_rules(data)
    for topic in ("cars/7/position", "cars", "cars/#", "#"):
        for purpose in (None, *list(rules.vocabulary)[:3]):
            allowed, because = rules.answer(PurposeQuestion(topic, purpose))
            assert because
            if topic == "#" and allowed:
                assert rules.answer(PurposeQuestion("cars/7", purpose))[0]


def _question(data: bytes) -> None:
    question = read_question(data, shipped())
    assert is_filter(question.topic)
    assert question.purpose is None or question.purpose in shipped()


def _vocabulary(data: bytes) -> None:
    found = read_vocabulary(data.decode(errors="replace"))
    assert 0 < len(found) <= MAX_PURPOSES
    assert all(is_purpose(one) and above in found for one in found for above in ancestors(one))
    assert read_vocabulary("\n".join(found)) == found


def _spelled(data: bytes) -> None:
    wanted = filter_of(data.decode(errors="replace"))
    assert ("#" in wanted.split("/")) or "HASH" not in wanted.split("/")
    if filter_problem(wanted) is None:
        assert read_topic(wanted) == wanted


def _reservations(data: bytes) -> None:
    """Three stores, and what a subscription reaches, beside the oracle."""
    script = Script(data, MOST)
    world = World(Random(script.number(2)))
    while script:
        move = script.number()
        if move % 3 == 0:
            world.change()
        elif move % 16 == 1:
            world.stranger()
        else:
            world.ask()
    wanted = "/".join(world.drawn.wanted())
    found = {
        (one.everywhere, one.somewhere, one.because)
        for store in world.stores.values()
        for one in [FilterReach(wanted, store.intersecting(wanted), None, len(data) % 2 == 1)]
    }
    assert len(found) == 1
    assert not +world.wrong


def _examples_of_rules() -> list[bytes]:
    more = {
        "vocabulary": ["operations/billing", "marketing/individualized"],
        "strict": True,
        "reservations": [
            {"owner": "driver", "filter": "cars/7/#", "aip": ["operations"], "pip": ["operations/billing"]},
            {"owner": "city", "filter": "cars/+/position", "aip": [], "pip": []},
            {"owner": "mallory", "filter": "#", "aip": ["marketing"], "pip": []},
        ],
    }
    return [RULES_EXAMPLE.encode(), json.dumps(more, indent=1).encode()]


def _examples_of_questions() -> list[bytes]:
    return [QUESTION_EXAMPLE.encode(), b'{"topic": "cars/+/#", "purpose": null}', b'{"topic": "$SYS/x"}']


TARGETS = [
    Target("purpose-rules", _rules, _examples_of_rules, (UsageError,), mutate_text, weight=5),
    Target("purpose-question", _question, _examples_of_questions, (UsageError,), mutate_text, weight=5),
    Target(
        "purpose-list",
        _vocabulary,
        lambda: [b"operations/billing\nmarketing # or so\n\nresearch", "\n".join(shipped()).encode()],
        (UsageError,),
        mutate_text,
        weight=3,
    ),
    Target(
        "purpose-filter",
        _spelled,
        lambda: [b"cars/PLUS/HASH", b"plant/HASHRATE/#"],
        (UsageError,),
        mutate_text,
    ),
    Target("reservations", _reservations, lambda: scripts(20, MOST), weight=2),
]
