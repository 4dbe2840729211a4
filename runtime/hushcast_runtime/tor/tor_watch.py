"""Watches a tor: its bootstrap, whether it has circuits, and its view of our clock."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import trio

from hushcast_runtime.logs import log
from hushcast_runtime.tor.bootstrap_reasons import in_words
from hushcast_runtime.tor.control import ControlClient
from hushcast_runtime.transports.base import TransportError

Progress = Callable[[int, str], None]
"""Takes percent (0 to 100) and tor's summary of the phase, whenever one of them changes."""

EVENTS = ("STATUS_CLIENT", "STATUS_GENERAL")
"""What the control connection has to ask for, so that a `TorWatch` hears of all this."""

_REASON = re.compile(r"[A-Z_]{1,40}\Z")  # a keyword of the control protocol: holds no address


@dataclass(frozen=True, slots=True)
class TorState:
    """What `hushcast status` shows of Tor."""

    percent: int | None = 0
    """Bootstrap progress, 0 to 100; `None` where a SOCKS port alone does not tell."""
    summary: str = "not started"
    connected: bool = False
    """Whether the control connection is up, or a SOCKS port alone of use; without it we reach nothing."""
    circuits: bool = False
    """Whether tor can build circuits at the moment, as far as it knows, or a SOCKS port alone has shown."""
    circuits_apart: bool = True
    """Whether tor closes our circuits one by one, as far as it was asked; relays see if they end together."""
    clock_skew: int | None = None
    """Seconds that this machine's clock is ahead (below 0: behind), when tor found it wrong."""
    services: int = 0
    """Onion services that are open."""
    published: int = 0
    """Those of them whose descriptors others can find."""
    pow: str = ""
    """Tor's proof-of-work defence of them: `on`, `off`, or `not in this tor`; empty before the first."""
    problem: str = ""
    """Why tor is of no use and what to do, as far as it shows: why its bootstrap stands still, or empty."""

    @property
    def has_begun(self) -> bool:
        """Whether tor has bootstrapped or, where only its SOCKS port is known, answers there."""
        return self.connected if self.percent is None else self.percent == 100

    @property
    def away(self) -> str:
        """What is missing while it is not connected, in words for the operator."""
        if self.percent is None:
            return self.problem or "tor does not answer at its SOCKS port"
        return "the control connection to tor is lost"

    @property
    def doing(self) -> str:
        """How far the bootstrap is, in a line for the operator."""
        if self.percent is None:
            return self.problem or self.summary
        return f"{self.percent} %{f': {self.problem}' if self.problem else ''}"


class TorWatch:
    """Keeps the `TorState` of one tor up to date from its replies and events."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = trio.Event()
        self._heard = 0  # events
        self.state = TorState()

    async def begin(self, control: ControlClient) -> None:
        """Note that the control connection is up and ask how tor is; events tell the rest."""
        from stem.response import ControlLine

        heard = -1
        while heard != self._heard:  # an event that was read behind an answer tells what is newer
            heard = self._heard
            phase = await control.getinfo("status/bootstrap-phase")
            circuits = await control.getinfo("status/circuit-established") == "1"
        line = ControlLine(phase)
        fields: dict[str, str] = {}
        try:
            while not line.is_empty():
                if line.is_next_mapping(quoted=True):
                    fields.update([line.pop_mapping(quoted=True)])
                elif line.is_next_mapping():
                    fields.update([line.pop_mapping()])
                else:
                    line.pop()
        except IndexError:  # of stem, where a last word is a key alone
            raise TransportError("a reply of tor is malformed") from None
        self.state = replace(self.state, connected=True, circuits=circuits)
        self._note(fields)

    def handle(self, event: Any) -> None:
        """Take an event of the control connection; those of other kinds are passed over."""
        if event.type not in EVENTS:
            return
        self._heard += 1
        fields: dict[str, str] = event.keyword_args
        if event.action == "BOOTSTRAP":
            self._note(fields)
        elif event.action == "CIRCUIT_ESTABLISHED":
            self._note_circuits(True, "")
        elif event.action in ("CIRCUIT_NOT_ESTABLISHED", "NOT_ENOUGH_DIR_INFO"):
            self._note_circuits(False, _reason(fields) or event.action)
        elif event.action == "CLOCK_SKEW":
            self._note_skew(fields.get("SKEW", ""))

    def end(self, summary: str) -> None:
        """Note that the control connection is lost."""
        self.state = replace(self.state, connected=False, circuits=False, summary=summary)

    async def wait(self) -> None:
        """Return once tor has bootstrapped for the first time."""
        await self._done.wait()

    def _note(self, fields: dict[str, str]) -> None:
        if "WARNING" in fields:  # whose text can hold addresses
            self._note_problem(_reason(fields))
        progress = fields.get("PROGRESS", "")
        before = self.state.percent or 0
        percent = int(progress) if progress.isdecimal() and len(progress) <= 3 else before
        changed = replace(
            self.state, percent=(percent := min(percent, 100)), summary=fields.get("SUMMARY", "")
        )
        if "WARNING" not in fields and percent > before:
            changed = replace(changed, problem="")
        if changed != self.state:
            self.state = changed
            self._progress(percent, changed.summary)
        if percent == 100:
            self._done.set()

    def _note_problem(self, reason: str) -> None:
        meaning = in_words(reason)
        log.warning("tor cannot bootstrap", reason=reason, meaning=meaning)
        self.state = replace(self.state, problem=meaning)

    def _note_circuits(self, there: bool, reason: str) -> None:
        if there == self.state.circuits:
            return
        self.state = replace(self.state, circuits=there)
        if there:
            log.info("tor has circuits")
        else:
            log.warning("tor has no circuits", reason=reason, meaning=in_words(reason))

    def _note_skew(self, text: str) -> None:
        try:
            skew = int(text)
        except ValueError:
            return
        self.state = replace(self.state, clock_skew=skew)
        log.warning("tor finds this machine's clock wrong", seconds=skew)


def _reason(fields: dict[str, str]) -> str:
    reason = fields.get("REASON", "")
    return reason if _REASON.match(reason) else ""
