"""The wire: one number for all that links carry, which the two ends of a link have to have in common."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.versions.translations import UNCHANGED, Translation
from hushcast_protocol.base.wire import Wire

WireNumber = Annotated[int, msgspec.Meta(ge=1, lt=2**16)]


class WireRange(Wire, frozen=True, tag="wires"):
    """The wires that a program speaks, the first and the last of them."""

    lowest: WireNumber
    highest: WireNumber

    def __post_init__(self) -> None:
        """Raise `ValueError` where there is none."""
        if self.lowest > self.highest:
            raise ValueError("the first of some wires is not after the last")

    def __contains__(self, number: int) -> bool:
        return self.lowest <= number <= self.highest

    def numbers(self) -> range:
        """Return all of them."""
        return range(self.lowest, self.highest + 1)

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return f"wire {self.lowest}"
        return f"wires {self.lowest} to {self.highest}"


FIRST = WireRange(1, 1)
"""What is spoken by whoever does not say."""

LASTING = 0
"""The number of links that carry only what every release reads, whatever else has changed: questions for
heads at directories, and the answers."""


@dataclass(frozen=True)
class WireTable:
    """The wires that a program speaks, and where the translation of each is: `module:NAME`.

    By name, as translations know kinds of all families, and what opens links knows none.
    """

    rows: Mapping[int, str]
    """By number, without a gap."""

    @functools.cached_property
    def spoken(self) -> WireRange:
        """The first and the last of them."""
        return WireRange(min(self.rows), max(self.rows))

    def translation(self, wire: int) -> Translation:
        """Return what is said otherwise in one of them; what lasts is the same in all.

        Raises `OtherWire` where it is none of them.
        """
        if wire == LASTING:
            return UNCHANGED
        if wire not in self.rows:
            raise OtherWire(WireRange(wire, wire))
        return _named(self.rows[wire])

    def opened(self, data: bytes) -> bytes | None:
        """Return what was sealed as the newest wire says it, whichever it was said in: its tag tells.

        `None` where the newest does not say it. Raises `DecodeError`.
        """
        spoken = map(_named, self.rows.values())
        of = next((translation for translation in spoken if translation.is_older(data)), UNCHANGED)
        return of.up(data)


WIRES = WireTable({1: "hushcast_protocol.base.versions.translations:UNCHANGED"})
"""All that this program speaks. A change of anything that links carry makes another wire."""


def table() -> WireTable:
    """Return the wires that this program speaks."""
    return WIRES


def spoken() -> WireRange:
    """Return the first and the last of them."""
    return table().spoken


@functools.cache
def _named(place: str) -> Translation:
    found = pkgutil.resolve_name(place)
    assert isinstance(found, Translation)
    return found


NETWORK = "this network"


class OtherWire(PeerError):
    """The other end of a link, or the network itself, speaks no wire that this program speaks."""

    def __init__(self, theirs: WireRange, who: str = "the other end") -> None:
        """`who` is `NETWORK` where heads tell it: nobody can pretend that."""
        self.theirs = theirs
        self._is_sure = who == NETWORK
        super().__init__(f"{self.found(who)}: {self.way_out}")

    def found(self, who: str) -> str:
        """Return what was found, of whoever that was."""
        return f"{who} speaks {self.theirs}, and this program {spoken()}"

    @property
    def way_out(self) -> str:
        """Who of the two has to do what."""
        if self._is_sure and self.theirs.lowest > spoken().highest:
            return "install a release that speaks it; subscriptions and what has arrived are kept"
        if self._is_sure:
            return "install an earlier release, which speaks it"
        if self.theirs.lowest > spoken().highest:
            return "if the network has gone on to that, install the release that it runs"
        return "its operator has to upgrade it, or the network has not come that far"
