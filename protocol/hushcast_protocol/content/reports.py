"""Reports: a probe's payload, which lists messages that its sender received, so that others find their gaps.

A report is sealed like every body: nobody outside the topic can read it. It does not reveal who wrote any of
the messages, nor when they came: moments of arrival are a subscriber's own, and would tie its reports to each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec

from hushcast_protocol.base.wire import Bytes32, Wire, decoder, encode
from hushcast_protocol.content.attributes import Value
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.predicates import Predicate

MAX_HEARD = 20  # messages in a report
MAX_REPORT = PADDED_SIZES[0] - 256  # bytes: with few attributes a probe is as small as the smallest message
SETTLED = 300.0  # seconds after which a message that others received should have come here, too
REPORTED_WITHIN = 1800.0  # seconds in which reports name a message: about ten of each subscriber do


class ReportedMessage(Wire, frozen=True, tag="heard"):
    """A message that the sender received, with its attributes."""

    id: Bytes32
    values: dict[str, Value]


class Report(Wire, frozen=True, tag="report/2"):
    """Some of what the sender received at least `SETTLED` seconds ago, at most `REPORTED_WITHIN`."""

    heard: Annotated[tuple[ReportedMessage, ...], msgspec.Meta(max_length=MAX_HEARD)]


decode_report: Callable[[bytes], Report] = decoder(Report, "report", MAX_REPORT)


def write_report(heard: Iterable[ReportedMessage], room: int = MAX_REPORT) -> bytes:
    """Return a report of the first of some messages that fit into `room` bytes, and into `MAX_REPORT`.

    An empty report takes 11 bytes, and always fits beside attributes.
    """
    named = list(heard)[:MAX_HEARD]
    while len(packed := encode(Report(tuple(named)))) > min(room, MAX_REPORT) and named:
        named.pop()
    return packed


def missed(report: Report, wanted: Predicate, knows: Callable[[bytes], bool]) -> list[bytes]:
    """Return the ids of reported messages that should have come here, too, and did not.

    For a subscription that has been complete for `REPORTED_WITHIN` seconds; only wanted messages count.
    """
    return [heard.id for heard in report.heard if wanted.matches(heard.values) and not knows(heard.id)]
