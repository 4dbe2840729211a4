"""The doctor: looks at what a provider needs to work, whether it runs or not, and says what to do."""

from __future__ import annotations

from collections.abc import Iterator

from hushcast.keys import read_link
from hushcast_located.daemon_conversation import examine_daemon
from hushcast_located.program import PROVIDER as PROVIDER_PROGRAM
from hushcast_located.service.counters import PROVIDER_COUNTERS, PROVIDER_GAUGES
from hushcast_located.service.identity import KEY_FILE
from hushcast_located.service.provider_store import ProviderStore
from hushcast_located.service.settings import ProviderSettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_runtime.processes.doctor import DaemonKind, examine_from_outside
from hushcast_runtime.processes.examinations import examine_core_dumps, examine_disk
from hushcast_runtime.processes.program import Program
from hushcast_runtime.wording import counted

NEARLY_FULL = 0.9  # share of the subscriptions that may be: then somebody should hear of it

PROVIDER = DaemonKind(
    PROVIDER_PROGRAM,
    64,  # open files: the database, the daemon, those who look
    PROVIDER_COUNTERS,
    PROVIDER_GAUGES,
    (KEY_FILE,),
)
_START = "start it, set its `socket_group`, and put the provider's user into that group"


async def examine(settings: ProviderSettings, program: Program) -> list[Finding]:
    """Return a finding for each thing looked at, from outside; takes some seconds."""

    async def beside() -> list[Finding]:
        return [*_links(settings), await examine_daemon(settings.daemon.socket, _START)]

    return await examine_from_outside(settings, program, beside)


def own_findings(settings: ProviderSettings, shelf: ProviderStore | None, is_there: bool) -> list[Finding]:
    """Return what a provider that runs finds of itself; `is_there`: its daemon answers."""
    found = [examine_disk(settings.state_path()), examine_core_dumps(PROVIDER.program.run_command)]
    if is_there:
        found.append(good("network", f"the daemon at {settings.daemon.socket} answers"))
    else:
        found.append(bad("network", f"the daemon at {settings.daemon.socket} does not answer", _START))
    return (
        found
        if shelf is None
        else [*found, *_owner(shelf), *_batches(shelf), _subscriptions(settings, shelf)]
    )


def _links(settings: ProviderSettings) -> Iterator[Finding]:
    for check, path in (("feed", settings.feed), ("requests", settings.requests)):
        if path is None:
            continue
        try:
            read_link(path)
        except UsageError as error:
            yield bad(check, str(error), "put the topic's link there, for the provider's user alone")
        else:
            yield good(check, f"the link in {path} can be read")


def _owner(shelf: ProviderStore) -> Iterator[Finding]:
    """Tell whether the feed is still signed by the key that is configured."""
    keys = shelf.keys
    if keys.end is not None:
        advice = "ask the feed's owner for another feed, and tell subscribers: nothing more will be answered"
        yield bad("owner", f"the owner's key was revoked with batch {keys.end}", advice)
    elif keys.current != keys.root and keys.current is not None:
        line = f'owner = "{keys.current.hex()}"'
        advice = f"ask the owner whether it is so; once a batch of it is answered, write {line} for newcomers"
        yield warning(
            "owner", f"has another key after batch {keys.said[-1].last}, named by the old one", advice
        )
    else:
        yield good("owner", "the key that is configured signs the feed")


def _batches(shelf: ProviderStore) -> Iterator[Finding]:
    again = "ask the feed's owner for `hushcast located publish --number N`"
    held = [batch for batch in shelf.arrivals.held if batch != shelf.current]
    if shelf.newest == 0 and not held:
        advice = "compare the link of the feed, or ask its owner for `hushcast located publish`"
        yield warning("batches", "none came so far", advice)
        return
    if any(batch.body.table not in shelf.tables for batch in held):
        yield bad("weights", "those of a batch that came did not", again)
    told = f"answered up to {shelf.newest}" if shelf.newest else "none answered yet"
    if held:
        told += f", {counted(len(held), 'batch waits', 'batches wait')}"
    yield good("batches", told)
    if missing := shelf.missing:
        numbers = ", ".join(map(str, missing))
        advice = "its subscribers saw the gap; look at the owner's daemon, and at this one's coverage"
        yield warning("missing batches", f"{numbers} never came", advice)


def _subscriptions(settings: ProviderSettings, shelf: ProviderStore) -> Finding:
    count = len(shelf.register)
    told = f"{count:,} of {settings.most:,} that may be"
    if count >= NEARLY_FULL * settings.most:
        return warning("subscriptions", told, "raise `most`: whoever comes when it is full hears nothing")
    return good("subscriptions", told)
