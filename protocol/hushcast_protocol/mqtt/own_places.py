"""The places of what this gateway publishes: by topic a number that grows, in an epoch of the run.

A number counts once the daemon has its message, and is written behind that. So after a kill the last numbers
may be given again: in another epoch, which says so. An epoch is the time of a topic's first message in a run,
in units so coarse that epochs of several topics, or gateways, are alike, and above the epoch before. A state
that comes from a backup has an epoch above that of what went out since.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.mqtt.arrival_order import Mark
from hushcast_protocol.mqtt.envelope import SOURCE, Place

MAX_NUMBERED = 10_000  # topics with numbers, 3 MB; what is more travels without a place
EPOCH_UNIT = 600  # seconds
EPOCHS_A_RUN = 16  # by which runs are apart at least: epochs of a topic that grew within a run
LAST_EPOCH, LAST_NUMBER = 2**31, 2**63  # that nobody comes to, and half of what is on the wire
MAX_UNNOTED = 1_000  # messages of a topic that a killed run may have given without a note
ALONE = 60.0  # seconds after which nothing of a topic is under way any more, as a rule


class SourceSecret(Secret):
    """What sources come from: 32 random bytes, which never leave the gateway."""

    __slots__ = ()


@dataclass
class _Topic:
    last: Mark
    """The last that the daemon took."""
    first: int = 0
    """The first epoch of this run; 0: none yet."""
    epoch: int = 0
    """The one of now."""
    went: float = -math.inf
    """When the last one did, at the latest."""
    is_alone: bool | None = None
    """Of the next one; `None`: not asked for yet."""


class OwnPlaces:
    """What was numbered, by topic; of two names of a topic the one that all gateways have is used."""

    def __init__(self, secret: SourceSecret, least: int = 1) -> None:
        """`secret` is the gateway's own; `least` is above all epochs of earlier runs, noted or not."""
        self._secret = secret
        self._least = least
        self._topics: OrderedDict[str, _Topic] = OrderedDict()

    def restore(self, topic: str, last: Mark, now: float) -> None:
        """Take up what an earlier run noted, which may have ended a moment ago."""
        self._topics[topic] = _Topic(last, went=now)

    def next(self, topic: str, now: float) -> tuple[Place | None, str]:
        """Return the place of a topic's next message, the same until it is `taken`.

        `None` where there are too many topics. Beside it the topic whose place was given up for it, or
        nothing. `now` is Unix time.
        """
        given_up = ""
        current = max(self._least, int(now) // EPOCH_UNIT)
        found = self._topics.get(topic)
        if found is None:
            if len(self._topics) >= MAX_NUMBERED:
                given_up = next(iter(self._topics))
                if max(self._topics[given_up].epoch, self._topics[given_up].last.epoch) >= current:
                    return None, ""  # its numbers would begin anew in the same epoch
                del self._topics[given_up]
            found = self._topics[topic] = _Topic(Mark(0, 0))
        if not found.epoch:
            found.first = found.epoch = max(found.last.epoch + 1, current)
        if found.is_alone is None:
            found.is_alone = now >= found.went + ALONE
        number = found.last.number + 1
        return Place(self.source(topic), found.epoch, number, found.is_alone), given_up

    def taken(self, topic: str, mark: Mark, now: float) -> None:
        """Note that the daemon took a message; it counts, and so do all below."""
        found = self._topics.setdefault(topic, _Topic(Mark(0, 0)))
        found.last, found.went, found.is_alone = max(found.last, mark), now, None
        self._topics.move_to_end(topic)

    def given_up(self, topic: str) -> None:
        """Note that nobody knows whether the daemon took a topic's next message.

        The number is given again, in an epoch above: who has got the message and who has not go on at once.
        """
        if (found := self._topics.get(topic)) is not None:
            found.epoch += 1

    def source(self, topic: str) -> bytes:
        """Return what stands for this gateway in a topic: two topics of it have nothing in common."""
        return digest(Domain.PLACE_SOURCE, topic.encode(), key=self._secret.reveal(), size=SOURCE)

    def is_known(self, topic: str, place: Place) -> bool:
        """Tell whether a message with this gateway's source was given to clients here, or will be.

        Else the gateway ended before it heard that the daemon had taken it.
        """
        found = self._topics.get(topic)
        if found is None:
            return False
        if found.first and found.first <= place.epoch <= found.epoch:
            return True
        return Mark(place.epoch, place.number) <= found.last

    def may_be_of_before(self, topic: str, place: Place) -> bool:
        """Tell whether an earlier run may have given a place that is not known.

        Whoever reads a topic can write this gateway's source: no place of it may be too high to go on from.
        """
        found = self._topics.get(topic)
        last = 0 if found is None else found.last.number
        return place.epoch < self._least and place.number <= last + MAX_UNNOTED
