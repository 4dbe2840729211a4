"""Tor's consensus as a witness of the time: it holds for three hours, and Tor's own authorities sign it."""

from __future__ import annotations

from datetime import UTC, datetime

import trio

from hushcast_protocol.base.trusted_clock import Span
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import TransportError

LOOK_EVERY = 60.0  # seconds between questions to our own tor; a consensus is made once an hour


async def consensus_span(tor: TorTransport) -> Span | None:
    """Return from when until when tor's consensus holds, in Unix seconds; `None` while it has none."""
    try:
        after = _seconds(await tor.getinfo("consensus/valid-after"))
        until = _seconds(await tor.getinfo("consensus/valid-until"))
    except (TransportError, ValueError):
        return None
    return after, until


async def compare_clock(
    clock: DaemonClock, tor: TorTransport, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Have tor's consensus bear witness of the time, until cancelled. Started: it has looked once."""
    looked = False
    while True:
        if (span := await consensus_span(tor)) is not None:
            clock.witness(span)
        if not looked:
            looked = True
            task_status.started()
        # More often than a disputed time could come to be trusted.
        await trio.sleep(min(LOOK_EVERY, clock.calendar.lead / 2))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
