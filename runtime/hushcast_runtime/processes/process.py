"""The frame of every daemon process: lock the state, open the transport, handle signals."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic

import msgspec
import trio

from hushcast_protocol.base.errors import HushcastError, UsageError
from hushcast_runtime import garbage
from hushcast_runtime.environment import system_environment
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.files import private_directory
from hushcast_runtime.logs import configure_logs, log
from hushcast_runtime.processes.config import DaemonSettings, ProcessSettings, SettingsT
from hushcast_runtime.processes.core_dumps import forbid_core_dumps
from hushcast_runtime.processes.readiness import Health, ServiceManager, service_manager
from hushcast_runtime.processes.steps import steps
from hushcast_runtime.storage.state_lock import locked
from hushcast_runtime.tor.socks_transport import SocksTransport
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Transport

_LOOK_EVERY = 0.02  # seconds: what is done once it is ready should not meet the first clients

Work = Callable[[trio.Nursery], Awaitable[None]]
"""Starts a daemon's tasks in the nursery and returns, or goes on until cancelled."""

Load = Callable[[], SettingsT]
"""Reads a daemon's configuration, at its start and whenever it is told to read it again."""


def run_until_signal(
    settings: SettingsT,
    load: Load[SettingsT],
    work: Work,
    health: Callable[[], Health],
    apply: Callable[[SettingsT], None] = lambda fresh: None,
) -> None:
    """Run a daemon until SIGTERM or SIGINT; SIGHUP reads the configuration again and applies its `log`.

    `apply` takes the rest of it that a running daemon can take; it may raise `UsageError`, and then changes
    nothing. Tells the service manager, if there is one, of the daemon's `health`. Raises the `HushcastError`
    that ended the daemon, `UsageError` if another one uses its state.
    """
    with locked(prepared(settings)):
        run_with_lock(work, health, Configuration(settings, load, apply), service_manager())


def prepared(settings: ProcessSettings) -> Path:
    """Begin a process: logs, no core dumps; return its state directory, which is made if there is none."""
    configure_logs(settings.log.level, settings.log.json)
    if settings.program is None:
        line = f'program = "{settings.program_name}"'
        log.warning("the configuration does not say which program it is of", line=line)
    if not settings.is_watched:
        forbid_core_dumps()
    return private_directory(settings.state_path())


def run_with_lock(
    work: Work,
    health: Callable[[], Health],
    configuration: Configuration[Any],
    manager: ServiceManager | None,
) -> None:
    """Run a daemon, which has the lock on its state, until a signal ends it, as `run_until_signal` does."""
    with ungrouped(HushcastError):
        trio.run(_live, work, health, configuration, manager)


class Configuration(Generic[SettingsT]):
    """The configuration of a running daemon, read again when it is told to."""

    def __init__(
        self,
        settings: SettingsT,
        load: Load[SettingsT],
        apply: Callable[[SettingsT], None] = lambda fresh: None,
    ) -> None:
        self._began = self._last = settings
        self._load = load
        self._apply = apply

    def reload(self) -> None:
        """Read it and apply what can be applied; one that cannot be used changes nothing."""
        try:
            fresh = self._load()
            self._apply(fresh)
        except UsageError as error:
            log.error("the configuration cannot be used: going on with the one before", reason=str(error))
            return
        configure_logs(fresh.log.level, fresh.log.json)
        self._last = fresh
        log.info("configuration read again")
        if changed := list(changed_keys(self._began, fresh.beside_live(self._began))):
            log.warning(
                "settings have changed that a running daemon cannot take: restart it to use them",
                settings=", ".join(changed),
            )

    def catch_up(self) -> None:
        """Read it if it changed. systemd takes a reload during a start for done as soon as the start is."""
        with suppress(UsageError):
            if self._load() == self._last:
                return
        self.reload()


def changed_keys(before: msgspec.Struct, after: msgspec.Struct, section: str = "") -> Iterator[str]:
    """Yield the keys that two configurations of a kind have different values of, as `tor.mode`."""
    for key, encoded in zip(before.__struct_fields__, before.__struct_encode_fields__, strict=True):
        old, new, name = getattr(before, key), getattr(after, key), f"{section}{encoded}"
        if isinstance(old, msgspec.Struct) and type(old) is type(new):
            yield from changed_keys(old, new, f"{name}.")
        elif old != new:
            yield name


async def _live(
    work: Work,
    health: Callable[[], Health],
    configuration: Configuration[Any],
    manager: ServiceManager | None,
) -> None:
    # What the receiver has not handed out when it closes is raised again: a reload that comes with the stop.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with trio.open_nursery() as nursery:
                if manager is not None:
                    nursery.start_soon(manager.keep_informed, health, configuration.catch_up)
                nursery.start_soon(_settle, health)
                nursery.start_soon(work, nursery)
                async for number in signals:
                    if number == signal.SIGHUP:
                        configuration.reload()
                        continue
                    log.info("stopping")
                    nursery.cancel_scope.cancel()
                    return
    finally:
        if manager is not None:
            manager.close()


async def _settle(health: Callable[[], Health]) -> None:
    """Once the daemon has started, measure its steps: what a start takes, nobody waits for."""
    while not health().has_started:  # noqa: ASYNC110 - a state of many parts, which none of them tells
        await trio.sleep(_LOOK_EVERY)
    garbage.begin_running()
    steps.begin()


async def open_transport(
    settings: DaemonSettings, nursery: trio.Nursery, announce: Callable[[Any], None]
) -> Transport:
    """Open the transport of the settings; `announce` gets it before it is ready, to show its progress."""
    if settings.transport == "tcp":
        return settings.tcp()
    shown = -1

    def progress(percent: int, summary: str) -> None:
        nonlocal shown
        if percent != shown:
            shown = percent
            log.info("tor", percent=percent, phase=summary)

    wanted = settings.tor.settings(Path(settings.state))
    tor: TorTransport | SocksTransport
    if wanted.has_control:
        tor = TorTransport(wanted, progress)
    else:
        assert wanted.socks is not None  # the settings have one or the other
        tor = SocksTransport(wanted.socks, wanted.ready_within, system_environment().randomness)
    announce(tor)
    await nursery.start(tor.run)
    return tor
