"""A small tree of brokers, their statements and questions, for the tests of tomography."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

from hypothesis import HealthCheck, settings

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.broker_tree import BrokerPosition, BrokerTree, check_tree, sign_tree
from hushcast_protocol.brokers.clear_words import ShownFilter, from_outside, outside
from hushcast_protocol.brokers.filters import Filter, Sides
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion
from hushcast_protocol.brokers.tomography.questions import TomographyQuestion
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters
from hushcast_protocol.brokers.tomography.statements import Statement, state
from hushcast_protocol.brokers.tomography.tomography_service import AnswerTimes, TomographyService
from hushcast_protocol.brokers.tomography.tree_paths import between

several = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties whose examples take some ms each, on any machine."""
SEEDS = {name: Seed(bytes([at]) * 32) for at, name in enumerate(("root", "c", "d", "a", "b", "e"), 1)}
SERVICE = Seed(bytes([99]) * 32)
KEYS = {name: seed.public() for name, seed in SEEDS.items()}
NETWORK = BrokersNetwork("crowds", "clear", 3600, KEYS["root"])
NOW = 3600.0 * 1000 + 600
EPOCH = 1000
EPOCHS = range(EPOCH, EPOCH + 1)
CAP = 8
PARENTS = {"c": "root", "d": "root", "a": "c", "b": "c", "e": "d"}
WHOLE = outside(ShownFilter(bytes(16), (99, 7, None), (None, None, None)))
"""Everything on the one topic that there is: two numbers and a label."""


@cache
def tree(**parents: str) -> BrokerTree:
    """root ← c ← edges a, b; root ← d ← edge e; or with these parents."""
    seats = [BrokerPosition(KEYS["root"], "127.0.0.1:1", "root", None)]
    for at, (name, parent) in enumerate((parents or PARENTS).items(), 2):
        role = "edge" if name in "abe" else "inner"
        seats.append(BrokerPosition(KEYS[name], f"127.0.0.1:{at}", role, KEYS[parent]))  # type: ignore[arg-type]
    return check_tree(sign_tree(SEEDS["root"], NETWORK, len(parents), seats), NETWORK)


def wanted(*sides: tuple[int, int] | str | None) -> Filter:
    """A filter as brokers see it."""
    padded: Sides = (*sides, *(None,) * (3 - len(sides)))
    return Filter(WHOLE.topic, padded)


def names(*numbers: int) -> tuple[bytes, ...]:
    """Pseudonyms."""
    return tuple(number.to_bytes(16, "big") for number in numbers)


def statement(
    broker: str, number: int, given: Filter, sources: Sequence[bytes] = (), **other: object
) -> Signed:
    """What a broker states and signs, valid for ten minutes unless it says otherwise."""
    fields: dict[str, object] = {"epoch": EPOCH, "is_held": True, "bogus": 0, "until": int(NOW) + 600}
    key = KEYS[broker]
    made = Statement(
        broker=key, number=number, filter=from_outside(given), sources=tuple(sources), **(fields | other)
    )  # type: ignore[arg-type]
    return state(SEEDS[broker], made)


def question(
    given: Filter, k: int, condition: AnonymityCondition = AnonymityCondition.SUCCESSOR, **other: object
) -> TomographyQuestion:
    """From a to the root, unless it says otherwise."""
    fields: dict[str, object] = {
        "origin": KEYS["a"],
        "target": KEYS["root"],
        "spread": 1,
        "is_real": False,
        "sources": (),
    }
    return TomographyQuestion(filter=from_outside(given), k=k, condition=condition, **(fields | other))  # type: ignore[arg-type]


def asked(of: TomographyQuestion) -> ComparableQuestion:
    """A question with its filter and way."""
    return ComparableQuestion(of, outside(of.filter), between(tree(), of.origin, of.target) or ())


def service(cap: int = CAP, **terms: float) -> TomographyService:
    """A service that nobody has told anything."""
    return TomographyService(SERVICE, StatedFilters(tree(), cap), Calendar(3600), AnswerTimes(**terms))


def key_of(name: str) -> PublicKey:
    return KEYS[name]


def drawn_sides(random: Random) -> Sides:
    """Sides of a small filter: few places, so that many cover each other."""
    low, high = sorted((random.randrange(6), random.randrange(6)))
    short, long = sorted((random.randrange(3), random.randrange(3)))
    return (
        random.choice((None, (low, high))),
        random.choice((None, (short, long))),
        random.choice((None, "aa" * 14)),
    )
