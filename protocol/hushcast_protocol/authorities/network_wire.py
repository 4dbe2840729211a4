"""What a network speaks, by the outside of its newest head, and what it goes on to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hushcast_protocol.authorities.heads import Head
from hushcast_protocol.base import wires
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.findings import Finding, bad, warning
from hushcast_protocol.base.wires import NETWORK, OtherWire, WireRange


@dataclass(frozen=True, slots=True)
class NetworkWire:
    """The wire in force in an epoch, and the one that was announced instead."""

    now: int
    coming: int | None = None
    """What it goes on to, or back to."""
    begins: int | None = None
    """The first epoch of that."""

    def check(self) -> None:
        """Raise `OtherWire` where what is in force is not spoken here."""
        if self.now not in wires.spoken():
            raise OtherWire(WireRange(self.now, self.now), NETWORK)

    @property
    def is_left_behind(self) -> bool:
        """Whether what is in force is spoken here, and what comes is not."""
        return self.now in wires.spoken() and self.coming is not None and self.coming not in wires.spoken()

    def describe(self, calendar: Calendar) -> dict[str, Any]:
        """Return all of it for a status, with what this program speaks, lowest and highest."""
        return {
            "now": self.now,
            "coming": self.coming,
            "begins": self._moment(calendar),
            "speaks": [wires.spoken().lowest, wires.spoken().highest],
        }

    def examine(self, calendar: Calendar) -> list[Finding]:
        """Tell whether this program is left behind, or will be."""
        try:
            self.check()
        except OtherWire as other:
            return [bad("wire", other.found(NETWORK), other.way_out)]
        if not self.is_left_behind:
            return []
        told = f"this network speaks wire {self.coming} from {self._moment(calendar)} on, and this program "
        return [
            warning("wire", f"{told}{wires.spoken()}", "install a release that speaks it before that day")
        ]

    def _moment(self, calendar: Calendar) -> str | None:
        if self.begins is None:
            return None
        return datetime.fromtimestamp(calendar.epoch_start(self.begins), UTC).strftime("%Y-%m-%dT%H:%MZ")


def wire_by(head: Head, epoch: int) -> NetworkWire:
    """Return what is spoken in an epoch as far as a head tells, which is of an epoch not long before."""
    now, change = head.authorities.wire, head.change
    if change is None or change.authorities.wire == now:
        return NetworkWire(now)
    if epoch >= change.epoch:
        return NetworkWire(change.authorities.wire)
    return NetworkWire(now, change.authorities.wire, change.epoch)
