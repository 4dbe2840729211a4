"""Rules and questions as people write them in JSON: one object of reservations, one for each question.

Reservations in a file have no order: of two of one owner for one filter, both count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import msgspec

from hushcast_protocol.base.budget import BudgetExhausted
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.foreign_text import foreign
from hushcast_protocol.base.suggestions import did_you_mean
from hushcast_protocol.mqtt.topics.filter_tree import FilterTree
from hushcast_protocol.mqtt.topics.topic_filters import has_control, normal
from hushcast_protocol.purposes.clauses import Clause, filter_problem, reserve
from hushcast_protocol.purposes.filter_reach import FilterReach, effective
from hushcast_protocol.purposes.purpose_decision import PurposeDecision, decide
from hushcast_protocol.purposes.purpose_names import Purpose, shown
from hushcast_protocol.purposes.reservations import MAX_RESERVATIONS
from hushcast_protocol.purposes.vocabulary import Vocabulary, shipped

MAX_RULES = 16_777_216  # bytes of rules: as many reservations as are kept, with 800 bytes each
MAX_QUESTION = 16_384  # bytes of a question: the longest topic, all of it escaped, takes 6,144
MAX_OWNER = 256  # characters of an owner's name

RULES_EXAMPLE = (
    '{"vocabulary": ["operations/billing"], "reservations": '
    '[{"owner": "fleet", "filter": "cars/#", "aip": ["operations"], "pip": []}]}'
)
QUESTION_EXAMPLE = '{"topic": "cars/7/position", "purpose": "operations/billing"}'

_RULES = ("vocabulary", "strict", "reservations")
_RESERVATION = ("owner", "filter", "aip", "pip")
_QUESTION = ("topic", "purpose")


class PurposeQuestion(msgspec.Struct, frozen=True):
    """A topic, or a filter for all of its topics, and a purpose."""

    topic: str
    purpose: Purpose | None


class ReservationRules:
    """Reservations under a vocabulary."""

    def __init__(self, vocabulary: Vocabulary, strict: bool, clauses: Iterable[Clause]) -> None:
        """`strict`: nobody gets what nobody reserved."""
        self.vocabulary = vocabulary
        self.strict = strict
        self.doubled: list[Clause] = []
        """Reservations whose owner has another one for the same filter."""
        self._tree: FilterTree[list[Clause]] = FilterTree()
        for one in clauses:
            there = self._tree.get(normal(one.filter))
            if there is None:
                self._tree.put(normal(one.filter), [one])
                continue
            if any(other.owner == one.owner for other in there):
                self.doubled.append(one)
            there.append(one)

    def answer(self, question: PurposeQuestion) -> tuple[bool, str]:
        """Tell whether the purpose is allowed, for a filter with all its topics, and because of what."""
        topic = question.topic
        if _is_wild(topic):
            found = self._reach(question)
            part = "for a part of it, " if found.somewhere and not found.everywhere else ""
            return found.everywhere, part + found.because
        decision = self._decide(question)
        return decision.allowed, decision.because

    def effective(self, wanted: str) -> frozenset[Purpose]:
        """Return the purposes that are allowed for a topic, or for all topics of a filter.

        Raises `UsageError` where too many reservations overlap to find them.
        """
        try:
            return effective(normal(wanted), self._intersecting(wanted), self.vocabulary, self.strict)
        except BudgetExhausted:
            raise UsageError(
                f"topic {shown(wanted)}: too many reservations overlap here to say what holds for all of it"
            ) from None

    def _decide(self, question: PurposeQuestion) -> PurposeDecision:
        there = self._tree.match(normal(question.topic))
        return decide([one for some in there for one in some], question.purpose, self.strict)

    def _reach(self, question: PurposeQuestion) -> FilterReach:
        return FilterReach(
            normal(question.topic), self._intersecting(question.topic), question.purpose, self.strict
        )

    def _intersecting(self, wanted: str) -> list[Clause]:
        return [one for some in self._tree.intersecting(normal(wanted)) for one in some]


def read_rules(data: bytes) -> ReservationRules:
    """Return rules from JSON; raise `UsageError` with the place of what is wrong.

    Without `vocabulary` it is the shipped one, without `strict` rules are not.
    """
    if len(data) > MAX_RULES:
        raise UsageError(f"it has more than {MAX_RULES:,} bytes")
    given = _object(_loaded(data, RULES_EXAMPLE), "a file of rules", _RULES, RULES_EXAMPLE)
    vocabulary = shipped()
    if "vocabulary" in given:
        vocabulary = _vocabulary(given["vocabulary"])
    strict = given.get("strict", False)
    if not isinstance(strict, bool):
        raise UsageError("'strict' is true or false")
    listed = _needed(given, "reservations", "a file of rules", RULES_EXAMPLE)
    if not isinstance(listed, list):
        raise UsageError(f"'reservations' is no list: write {RULES_EXAMPLE}")
    if len(listed) > MAX_RESERVATIONS:
        raise UsageError(f"'reservations' has {len(listed):,}, and {MAX_RESERVATIONS:,} are the most")
    clauses = [_clause(f"reservations #{number}", one, vocabulary) for number, one in enumerate(listed, 1)]
    return ReservationRules(vocabulary, strict, clauses)


def read_question(line: bytes, vocabulary: Vocabulary) -> PurposeQuestion:
    """Return a question from a line of JSON; raise `UsageError`. Without a purpose it is `None`."""
    if len(line) > MAX_QUESTION:
        raise UsageError(f"it has more than {MAX_QUESTION:,} bytes")
    given = _object(_loaded(line, QUESTION_EXAMPLE), "a question", _QUESTION, QUESTION_EXAMPLE)
    topic = read_topic(_text("topic", _needed(given, "topic", "a question", QUESTION_EXAMPLE)))
    purpose = given.get("purpose")
    return PurposeQuestion(topic, None if purpose is None else vocabulary.read(_text("purpose", purpose)))


def read_topic(text: str) -> str:
    """Return a topic name or filter that can be asked for; raise `UsageError`."""
    if (problem := filter_problem(text)) is not None:
        raise UsageError(f"topic {shown(text)}: {problem}")
    return text


def _is_wild(topic: str) -> bool:
    return "+" in topic or "#" in topic


def _vocabulary(given: Any) -> Vocabulary:
    try:
        return Vocabulary(_texts("vocabulary", given))
    except UsageError as error:
        text = str(error)
        raise UsageError(text if text.startswith("'vocabulary'") else f"'vocabulary': {text}") from None


def _clause(place: str, given: Any, vocabulary: Vocabulary) -> Clause:
    try:
        fields = _object(given, "a reservation", _RESERVATION, RULES_EXAMPLE)
        owner, wanted, aip, pip = (
            _needed(fields, key, "a reservation", RULES_EXAMPLE) for key in _RESERVATION
        )
        name = _text("owner", owner)
        if not name or len(name) > MAX_OWNER or has_control(name):
            raise UsageError(f"'owner' {shown(name)} has 1 to {MAX_OWNER} characters, none of them control")
        return reserve(name, _text("filter", wanted), _texts("aip", aip), _texts("pip", pip), vocabulary)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _loaded(data: bytes, example: str) -> Any:
    try:
        return json.loads(data, object_pairs_hook=_once, parse_constant=_no_constant)
    except UsageError:
        raise
    except json.JSONDecodeError as error:
        raise UsageError(
            foreign(data) or f"line {error.lineno}, column {error.colno}: this is no JSON: write {example}"
        ) from None
    except (ValueError, RecursionError):  # no UTF-8, numbers of thousands of digits, nested too deep
        raise UsageError(foreign(data) or f"this is no JSON: write {example}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UsageError(f"{shown(twice)} stands twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise UsageError(f"{name} is no JSON")


def _object(given: Any, what: str, keys: tuple[str, ...], example: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise UsageError(f"{what} is an object: write {example}")
    for key in given:
        if key not in keys:
            known = ", ".join(map(repr, keys))
            hint = did_you_mean(key[:MAX_OWNER], keys)
            raise UsageError(f"{shown(key)} is not known, {what} has {known}{hint}")
    return given


def _needed(given: Mapping[str, Any], key: str, what: str, example: str) -> Any:
    if key not in given:
        raise UsageError(f"{key!r} is missing: {what} is written {example}")
    return given[key]


def _texts(key: str, given: Any) -> list[str]:
    if not isinstance(given, list):
        raise UsageError(f"{key!r} is no list of purposes")
    return [_text(key, one) for one in given]


def _text(key: str, given: Any) -> str:
    if not isinstance(given, str):
        raise UsageError(f"{key!r} is no text")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{key!r} is no valid Unicode") from None
    return given
