"""A clause: what one owner allows and prohibits for the topics of one filter.

A reservation is a clause that stays (paper: section V-A). A message may carry one of its own, which holds for
that message alone. Clauses are never merged: two sets of allowed and prohibited purposes, once united or
intersected, no longer say who prohibited what, and the published rules for that let through what one of them
prohibits.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import msgspec

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.limits import MAX_TOPIC
from hushcast_protocol.mqtt.topics.topic_filters import MAX_LEVELS, is_filter, split_share
from hushcast_protocol.purposes.purpose_names import Purpose, shown
from hushcast_protocol.purposes.vocabulary import Vocabulary


class Clause(msgspec.Struct, frozen=True, gc=False):  # texts and sets of texts make no cycles
    """Purposes that an owner allows (`aip`) and prohibits (`pip`) for the topics that a filter matches.

    An owner has one for each filter. No purpose in `aip` means that nothing is allowed for these topics, also
    not by others of the owner's; to take a reservation away is something else (paper: section V-A).
    """

    owner: str
    filter: str
    aip: frozenset[Purpose]
    pip: frozenset[Purpose]
    of_message: bool = False
    """Whether one message brought it: then it stands beside its owner's reservations and widens none."""
    of: str = ""
    """Of one that is for the same messages by other names (`Clause.under`): the filter as it was written."""

    of_nobody: bool = False
    """Whether its owner is gone: it goes on taking away, and counts for nothing where rules are strict."""

    @property
    def written(self) -> str:
        """The filter as its owner wrote it."""
        return self.of or self.filter

    def under(self, wanted: str) -> Clause:
        """Return the same for a filter that matches other names of the same messages."""
        if wanted == self.filter:
            return self
        return msgspec.structs.replace(self, filter=wanted, of=self.written)


place = attrgetter("owner", "of_message", "filter")
"""What sorts a clause among others, in whatever order they were found."""


def reserve(
    owner: str, wanted: str, aip: Iterable[str], pip: Iterable[str], vocabulary: Vocabulary
) -> Clause:
    """Return a reservation; raise `UsageError` where the filter or a purpose is none."""
    if (problem := filter_problem(wanted)) is not None:
        raise UsageError(f"filter {shown(wanted)}: {problem}")
    return Clause(owner, wanted, _purposes("aip", aip, vocabulary), _purposes("pip", pip, vocabulary))


def of_message(
    publisher: str, topic: str, aip: Iterable[str] | None, pip: Iterable[str], vocabulary: Vocabulary
) -> Clause:
    """Return the clause of one message, which can only narrow what is allowed; raise `UsageError`.

    Without `aip` it prohibits and leaves the rest as it is.
    """
    allowed = vocabulary.roots if aip is None else _purposes("aip", aip, vocabulary)
    return Clause(publisher, topic, allowed, _purposes("pip", pip, vocabulary), of_message=True)


def filter_problem(wanted: str) -> str | None:
    """Return why this filter cannot be reserved, `None` if it can."""
    if len(wanted) > MAX_TOPIC:
        return f"it has more than {MAX_TOPIC} characters"
    if split_share(wanted) is not None:
        return "reserve what stands behind $share/GROUP/: that holds for shared subscriptions, too"
    if not is_filter(wanted):
        return "not a topic filter: `+` and `#` fill a whole level, and `#` is the last"
    if (count := wanted.count("/") + 1) > MAX_LEVELS:
        return f"it has {count} levels, and {MAX_LEVELS} are the most"
    return None


def _purposes(name: str, texts: Iterable[str], vocabulary: Vocabulary) -> frozenset[Purpose]:
    try:
        return frozenset(map(vocabulary.read, texts))
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
