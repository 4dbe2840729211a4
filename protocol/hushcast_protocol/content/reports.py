"""Reports: a probe's payload, which lists messages that its sender received, so that others find their gaps.

A report is sealed like every body: nobody outside the topic can read it. It does not reveal who wrote any of
the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec

from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder, encode
from hushcast_protocol.content.attributes import Value
from hushcast_protocol.content.messages import PADDED_SIZES
from hushcast_protocol.content.predicates import Predicate

MAX_HEARD = 20  # messages in a report
MAX_REPORT = PADDED_SIZES[0] - 256  # bytes: with its attributes a probe is as small as the smallest message


class Heard(Wire, frozen=True, tag="heard"):
    """A message that the sender received `age` seconds ago, with its attributes."""

    id: Bytes32
    age: Counter
    values: dict[str, Value]


class Report(Wire, frozen=True, tag="report/1"):
    """Some of what the sender received lately."""

    heard: Annotated[tuple[Heard, ...], msgspec.Meta(max_length=MAX_HEARD)]


decode_report: Callable[[bytes], Report] = decoder(Report, "report", MAX_REPORT)


def write_report(heard: Iterable[Heard]) -> bytes:
    """Return a report of the first of some messages that fit, at most `MAX_REPORT` bytes."""
    named = list(heard)[:MAX_HEARD]
    while len(packed := encode(Report(tuple(named)))) > MAX_REPORT:
        named.pop()
    return packed


def missed(
    report: Report, wanted: Predicate, knows: Callable[[bytes], bool], settled: float, since: float
) -> list[bytes]:
    """Return the ids of reported messages that should have come here, too, and did not.

    Only wanted messages count that others received at least `settled` seconds ago, and at most `since`
    seconds ago: since then this subscription has been complete.
    """
    return [
        heard.id
        for heard in report.heard
        if settled <= heard.age <= since and wanted.matches(heard.values) and not knows(heard.id)
    ]
