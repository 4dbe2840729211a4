"""Standing by: a process waits until another leaves the state that both have, and then begins as any does."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TextIO

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.logs import log
from hushcast_runtime.processes.config import ProcessSettings, SettingsT
from hushcast_runtime.processes.process import Load, prepared
from hushcast_runtime.processes.readiness import Health, ServiceManager
from hushcast_runtime.storage.file_systems import check_locks
from hushcast_runtime.storage.state_lock import take_lock

LOOK_EVERY = 0.1  # seconds: what a take-over takes longer at most, for a look of some 20 µs
WAITS = "standing by: another process has the state"


def lock_when_free(settings: ProcessSettings, manager: ServiceManager | None) -> TextIO | None:
    """Return the lock on a state once no other process has it; `None` where a signal ended the wait.

    Until then nothing but the lock is opened: whoever has that is the only one who serves. Raises
    `UsageError` where locks are not known to keep others out.
    """
    state = prepared(settings)
    check_locks(state)
    # While it waits, and until the process takes signals: the configuration is read when that begins.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return take_lock(state) or trio.run(_wait, state, manager)


def read_again(load: Load[SettingsT], before: SettingsT) -> SettingsT:
    """Return the configuration as it is now, or the one before where that cannot be used.

    Nobody looks at a process that stands by: it must not fail when it is needed.
    """
    try:
        fresh = load()
        if fresh.state_path() != before.state_path():
            raise UsageError(f"state: it was {before.state_path()} when the wait began: start this again")
    except UsageError as error:
        log.error("the configuration cannot be used: going on with the one before", reason=str(error))
        return before
    return fresh


async def _wait(state: Path, manager: ServiceManager | None) -> TextIO | None:
    """Return the lock once it is free, `None` where a signal ended the wait."""
    lock: TextIO | None = None
    is_stopped = trio.Event()
    async with trio.open_nursery() as nursery:
        if manager is not None:
            nursery.start_soon(manager.keep_informed, lambda: Health(True, WAITS))
        await nursery.start(_until_stopped, is_stopped, nursery.cancel_scope)
        log.info("standing by")  # from here on a signal ends the wait, and not the process
        while (lock := take_lock(state)) is None:  # noqa: ASYNC110 - nobody is told when a lock is free
            await trio.sleep(LOOK_EVERY)
        nursery.cancel_scope.cancel()
    if lock is not None and not is_stopped.is_set():
        log.info("taking over")
        return lock
    log.info("stopping")
    if lock is not None:
        lock.close()
    if manager is not None:
        manager.close()
    return None


async def _until_stopped(
    is_stopped: trio.Event,
    waiting: trio.CancelScope,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            is_stopped.set()
            waiting.cancel()
            return
