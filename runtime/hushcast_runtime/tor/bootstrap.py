"""Bootstrap of a tor: how far it has come, as a value to show and an event to wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import trio
from stem.response import ControlLine

from hushcast_runtime.tor.control import ControlClient

Progress = Callable[[int, str], None]
"""Takes percent (0 to 100) and tor's summary of the phase, whenever one of them changes."""

EVENTS = ("STATUS_CLIENT",)
"""What the control connection has to ask for, so that a `BootstrapWatch` hears of progress."""


@dataclass(frozen=True, slots=True)
class TorState:
    """What `hushcast status` shows of Tor."""

    percent: int = 0
    """Bootstrap progress, 0 to 100."""
    summary: str = "not started"
    connected: bool = False
    """Whether the control connection is up; without it no onion service of ours can be reached."""


class BootstrapWatch:
    """Keeps the `TorState` of one tor up to date from its replies and events."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = trio.Event()
        self.state = TorState()

    async def begin(self, control: ControlClient) -> None:
        """Note that the control connection is up and ask how far tor is; events tell the rest."""
        self.state = replace(self.state, connected=True)
        line = ControlLine(await control.getinfo("status/bootstrap-phase"))
        fields: dict[str, str] = {}
        while not line.is_empty():
            if line.is_next_mapping(quoted=True):
                fields.update([line.pop_mapping(quoted=True)])
            elif line.is_next_mapping():
                fields.update([line.pop_mapping()])
            else:
                line.pop()
        self._note(fields)

    def handle(self, event: Any) -> None:
        """Take an event of the control connection; those of other kinds are passed over."""
        if event.type == "STATUS_CLIENT" and event.action == "BOOTSTRAP":
            self._note(event.keyword_args)

    def end(self) -> None:
        """Note that the control connection is lost."""
        self.state = replace(self.state, connected=False, summary="control connection lost")

    async def wait(self) -> None:
        """Return once tor has bootstrapped for the first time."""
        await self._done.wait()

    def _note(self, fields: dict[str, str]) -> None:
        progress = fields.get("PROGRESS", "")
        percent = int(progress) if progress.isdecimal() and len(progress) <= 3 else self.state.percent
        changed = replace(self.state, percent=min(percent, 100), summary=fields.get("SUMMARY", ""))
        if changed != self.state:
            self.state = changed
            self._progress(changed.percent, changed.summary)
        if changed.percent == 100:
            self._done.set()
