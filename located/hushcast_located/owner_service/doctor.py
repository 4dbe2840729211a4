"""The doctor: looks at what an owner needs to work, whether it runs or not, and says what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hushcast.keys import read_link
from hushcast_located.daemon_conversation import examine_daemon
from hushcast_located.owner_service.counters import OWNER_COUNTERS, OWNER_GAUGES
from hushcast_located.owner_service.feed_owner import FeedOwner
from hushcast_located.owner_service.owner_seeds import KEY_FILE, PUBLIC_FILE
from hushcast_located.owner_service.settings import OwnerSettings
from hushcast_located.program import OWNER
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_runtime.counters import Counters
from hushcast_runtime.processes.doctor import DaemonKind, examine_from_outside
from hushcast_runtime.processes.examinations import examine_core_dumps, examine_disk
from hushcast_runtime.processes.program import Program
from hushcast_runtime.wording import counted

BEHIND = 2  # batches that are signed and not published: one is on its way as a rule

OWNER_KIND = DaemonKind(
    OWNER,
    64,  # open files: the database, the daemon, the pipe, a file, those who look
    OWNER_COUNTERS,
    OWNER_GAUGES,
    (KEY_FILE,),
)
_START = "start it, set its `socket_group`, and put the owner's user into that group"


async def examine(settings: OwnerSettings, program: Program) -> list[Finding]:
    """Return a finding for each thing looked at, from outside; takes some seconds."""

    async def beside() -> list[Finding]:
        return [*_links(settings), *_key(settings), await examine_daemon(settings.daemon.socket, _START)]

    return await examine_from_outside(settings, program, beside)


def own_findings(settings: OwnerSettings, owner: FeedOwner | None, counters: Counters) -> list[Finding]:
    """Return what an owner that runs finds of itself."""
    found = [examine_disk(settings.state_path()), examine_core_dumps(OWNER.run_command), *_key(settings)]
    found += _folder(settings)
    path = settings.daemon.socket
    if owner is not None and owner.is_there:
        found.append(good("network", f"the daemon at {path} answers"))
    else:
        found.append(bad("network", f"the daemon at {path} does not answer", _START))
    return (
        found if owner is None else [*found, *_former_key(settings, owner), _batches(owner), _input(counters)]
    )


def _links(settings: OwnerSettings) -> Iterator[Finding]:
    for check, path in (("feed", settings.feed), ("topic", settings.input.topic)):
        if path is None:
            continue
        try:
            read_link(path)
        except UsageError as error:
            yield bad(check, str(error), "put the topic's link there, for the owner's user alone")
        else:
            yield good(check, f"the link in {path} can be read")


def _key(settings: OwnerSettings) -> Iterator[Finding]:
    """Tell which key subscribers and the provider need, where it is known."""
    try:
        public = (settings.state_path() / PUBLIC_FILE).read_text().strip()
    except OSError:
        return
    yield good("key", f"batches are signed by {public}")


def _former_key(settings: OwnerSettings, owner: FeedOwner) -> Iterator[Finding]:
    """Tell when a key that has handed over is needed no more."""
    if settings.former_key is None:
        return
    last = OwnerKeys.read(owner.signer.public, owner.signer.folder.handovers()).said[-1:]
    if not last or owner.pool.progress.published <= last[0].last + 1:
        yield good("former key", "hands over with the next batch; leave it until two of the new key are out")
    else:
        yield warning(
            "former key",
            f"has handed over after batch {last[0].last}, and is needed no more",
            "take `former_key` out of the configuration, and destroy the file: who has it can end the feed",
        )


def _folder(settings: OwnerSettings) -> Iterator[Finding]:
    folder = settings.input.directory
    if folder is None:
        return
    if os.access(Path(folder), os.R_OK | os.X_OK):
        yield good("directory", f"{folder} can be read")
    else:
        yield bad("directory", f"{folder} cannot be read", "make it, for the owner's user to read")


def _batches(owner: FeedOwner) -> Finding:
    done = owner.pool.progress
    told = f"{counted(done.signed, 'batch', 'batches')} signed, {done.published:,} published, "
    told += f"{counted(len(owner.pool), 'message')} waiting"
    if done.signed - done.published > BEHIND:
        return warning("batches", told, "look at the daemon: its outbox is full, or it is away")
    return good("batches", told)


def _input(counters: Counters) -> Finding:
    refused = counters["input_refused"]
    if refused:
        return warning(
            "input",
            f"{counted(refused, 'line or file is', 'lines or files are')} no messages since the start",
            "look at what is put in: `hushcast located batch --in` says what is wrong with a file of lines",
        )
    return good("input", "all that came in are messages")
