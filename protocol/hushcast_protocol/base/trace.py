"""Traces: what a testnet daemon observed, and the ground truth beside it, as JSON lines for analysis.

Observations are what an adversary who ran the daemon would know; the truth is what only the owner knows. They
go to separate files, `<node>.observations.jsonl` and `<node>.truth.jsonl`. The kinds of line and their fields
are those of the types in `observations.py` and `ground_truth.py`. Needs the standard library alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hushcast_protocol.base.ground_truth import GroundTruth
from hushcast_protocol.base.observations import Observed

SCHEMA = 4

_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class TraceLine:
    """What every line of a trace has. Byte strings are hex; what does not apply is absent."""

    node: str  # the identity key of a relay, server, proxy or broker, or a client's name in the testnet
    time: float  # seconds since the testnet's beginning
    epoch: int
    kind: str


def _line(name: str, events: Any) -> type[Any]:
    """Return the type of lines of a union of events: a subclass of `TraceLine` with all their fields.

    Fields stand in a line in the order in which the union first has them.
    """
    kinds = tuple(kind_of(event) for event in get_args(events))
    hints = {name: hint for event in get_args(events) for name, hint in get_type_hints(event).items()}
    fields = [(name, _written(hint) | None, field(default=None)) for name, hint in hints.items()]
    return make_dataclass(name, [("kind", Literal[kinds]), *fields], bases=(TraceLine,), frozen=True)


def _written(hint: Any) -> Any:
    """Return the type that a value has in a line, given its type in an event."""
    inner = tuple(_written(each) for each in get_args(hint))
    origin = get_origin(hint)
    if origin is UnionType:
        return reduce(or_, inner)
    if origin is Mapping:
        return GenericAlias(dict, inner)
    if origin in (Sequence, tuple):
        return GenericAlias(tuple, (inner[0], ...))
    return str if hint is bytes else hint


def kind_of(event: type[Observed] | type[GroundTruth]) -> str:
    """Return what a trace calls a type of events."""
    return event.__name__.lower()


Observation = _line("Observation", Observed)
"""One thing that one daemon saw."""

Truth = _line("Truth", GroundTruth)
"""One thing that only the daemon that did it knows."""


def to_line(record: TraceLine) -> str:
    """Return a record as one JSON line without its line end."""
    # No field holds a dataclass: `asdict`, which copies each value, took nine times as long.
    fields = {name: value for name, value in vars(record).items() if value is not None}
    return _encode({"schema": SCHEMA, **fields})
