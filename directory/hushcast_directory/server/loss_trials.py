"""What hidden subscriptions told, kept on disk: trials that count, and the subscriptions that go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.expulsion import LossTrial
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import MAX_SEATED
from hushcast_runtime.files import write_private
from hushcast_runtime.processes.config import KeyText

MAX_TRIALS = 512  # 64 subscriptions of 8 epochs each, for two days; more say nothing new
MAX_HIDDEN = 64  # subscriptions of one authority: each is a box, and a lease at every relay

_Counts = tuple[Annotated[float, msgspec.Meta(ge=0)], Annotated[float, msgspec.Meta(ge=0)]]
_Relays = Annotated[dict[KeyText, _Counts], msgspec.Meta(max_length=MAX_SEATED)]


class HiddenSubscription(msgspec.Struct, frozen=True):
    """A hidden subscription."""

    topic: str
    ends: float
    """Unix seconds."""


class _Trial(msgspec.Struct, frozen=True):
    ended: float
    relays: _Relays


class _StoredTrial(msgspec.Struct, frozen=True):
    hidden: list[HiddenSubscription]
    trials: list[_Trial]


_decode: Callable[[bytes], _StoredTrial] = msgspec.json.Decoder(_StoredTrial).decode


class LossTrials:
    """Trials and hidden subscriptions of one authority, in a file that nobody else may read.

    Whoever knows the topics can tell the probes.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._ended: list[tuple[float, LossTrial]] = []
        self.hidden: list[HiddenSubscription] = []
        """Subscriptions that go on."""

    @property
    def trials(self) -> list[LossTrial]:
        """The trials that count, oldest first."""
        return [trial for _, trial in self._ended]

    def load(self) -> None:
        """Read what was kept; raise `UsageError` if it cannot be used."""
        try:
            kept = _decode(self._file.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            raise UsageError(f"{self._file} cannot be read: {error}: delete it to begin anew") from None
        self.hidden = kept.hidden[:MAX_HIDDEN]
        self._ended = [
            (one.ended, {bytes.fromhex(relay): counts for relay, counts in one.relays.items()})
            for one in kept.trials[-MAX_TRIALS:]
        ]

    def begin(self, hidden: HiddenSubscription) -> None:
        """Note a subscription; durable on return."""
        self.hidden.append(hidden)
        self._write()

    def end(self, hidden: HiddenSubscription, trial: LossTrial | None, now: float, since: float) -> None:
        """Note what a subscription told, and forget what was told before a moment; durable on return."""
        self.hidden.remove(hidden)
        if trial:
            self._ended.append((now, trial))
        self._ended = [one for one in self._ended if since <= one[0] <= now][-MAX_TRIALS:]
        self._write()

    def _write(self) -> None:
        trials = [
            _Trial(
                ended,
                {relay.hex(): (round(lost, 3), round(passed, 3)) for relay, (lost, passed) in trial.items()},
            )
            for ended, trial in self._ended
        ]
        write_private(self._file, msgspec.json.encode(_StoredTrial(self.hidden, trials)))
