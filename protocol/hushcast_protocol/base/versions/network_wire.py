"""What a network speaks, and what it goes on to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hushcast_protocol.base.epochs import EPOCHS_A_DAY, Calendar
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding, bad, warning
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.translations import Translation
from hushcast_protocol.base.versions.wires import NETWORK, OtherWire, WireNumber, WireRange
from hushcast_protocol.base.wire import Counter, Lasting


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

    def spoken(self) -> int:
        """Return in which wire links are opened; raise `OtherWire` where it is not spoken here."""
        self.check()
        return self.now

    @property
    def nearest(self) -> int:
        """What is next to it of all that this program speaks: for questions whether that is still so."""
        return min(max(self.now, wires.spoken().lowest), wires.spoken().highest)

    @property
    def manner(self) -> Manner:
        """How ends without a name show themselves in it, as far as this program speaks it."""
        return self.translation.manner

    @property
    def translation(self) -> Translation:
        """What it says otherwise than the newest, as far as this program speaks it."""
        return wires.table().translation(self.nearest)

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


class AnnouncedWire(Lasting, frozen=True, tag="announced-wire"):
    """What a network speaks, as one says who decides for all of it; every release reads that."""

    now: WireNumber
    coming: WireNumber | None
    """What it goes on to, or back to."""
    begins: Counter
    """The first epoch of that; 0 where nothing comes."""

    def by(self, epoch: int) -> NetworkWire:
        """Return what is spoken in an epoch, as far as is announced."""
        if self.coming is None:
            return NetworkWire(self.now)
        if epoch >= self.begins:
            return NetworkWire(self.coming)
        return NetworkWire(self.now, self.coming, self.begins)

    def towards(self, wanted: int | None, epoch: int) -> AnnouncedWire:
        """Return what is to be announced on the way to a wire, if any is wanted: one step at a time.

        What was announced comes, whatever is wanted meanwhile: some rely on it.
        """
        spoken = self.by(epoch)
        if spoken.coming is not None:
            return self
        if wanted is None or wanted == spoken.now:
            return AnnouncedWire(spoken.now, None, 0)
        begins = (epoch // EPOCHS_A_DAY + 2) * EPOCHS_A_DAY  # a whole day ahead, at a change of day
        return AnnouncedWire(spoken.now, spoken.now + (1 if wanted > spoken.now else -1), begins)


def check_wanted(wire: int | None) -> None:
    """Raise `UsageError` where a configuration asks for what this program does not speak."""
    if wire is not None and wire not in wires.spoken():
        raise UsageError(f"wire: this program speaks {wires.spoken()}: write that, or leave it out")


BEGINNING = AnnouncedWire(wires.FIRST.lowest, None, 0)
"""What is spoken where nobody says so."""
