"""The directory as a program: it signs the list of a network's relays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hushcast_runtime.program import Program, ProgramRole

if TYPE_CHECKING:
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_protocol.base.findings import Finding
    from hushcast_runtime.storage.state_directory import KeyChange, StateKind


def _parse(data: bytes, where: str) -> DirectorySettings:
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_runtime.processes.config import parse_settings

    return parse_settings(data, where, DirectorySettings)


def _run(load: Callable[[], DirectorySettings]) -> None:
    from hushcast_directory.server.process import run_directory

    run_directory(load)


async def _examine(settings: DirectorySettings) -> list[Finding]:
    from hushcast_directory.server.process import DIRECTORY
    from hushcast_runtime.processes.doctor import examine_from_outside

    return await examine_from_outside(settings, DIRECTORY)


def _state(settings: DirectorySettings) -> StateKind:
    from hushcast_directory.server.process import KEY_FILES
    from hushcast_directory.server.restoration import note_restored
    from hushcast_runtime.storage.state_directory import StateKind

    return StateKind("directory", settings.network.network(), KEY_FILES, DIRECTORY.version, note_restored)


def _rotate(settings: DirectorySettings, kind: StateKind, keys: tuple[str, ...], signs: bool) -> KeyChange:
    from hushcast_directory.server.key_rotation import rotate_directory

    return rotate_directory(settings, kind, keys, signs)


DIRECTORY = Program(
    name="directory",
    group="directory",
    module=("hushcast_directory",),
    roles=(
        ProgramRole(
            "directory",
            "A directory: it signs the list of the network's relays, once an epoch.",
            founds="overlay",
            restored="It is as it was then: relays that registered since do so again. It signs nothing for "
            "the epoch that runs and, from its middle on, for the next: it may have done so already. Daemons "
            "go on with the roster that they have.",
            below="# Relays that must have registered before the first list: the number that you start "
            "with.\nfirst_roster = 1\n",
        ),
    ),
    parse=_parse,
    run=_run,
    examine=_examine,
    state=_state,
    rotate=_rotate,
    keys=("signing", "service"),
    run_help="""Run a network's directory in the foreground until SIGTERM or Ctrl-C.

    It writes `network.toml`, the section that the network's daemons need, into its state directory. SIGHUP
    makes it list the relays that a closed network names then, and vote for what `[authorities]` says
    then.""",
    doctor_help="""Look for what keeps a directory from working.

    Says what to do about it. Looks at the state, and asks a directory that runs for its Tor, clock, disk and
    limits, whether its onion service is published and reached from here, how old its roster is and how many
    relays are in it; of several that agree also which others are reached, whether this one's votes count,
    and what is kept or said against whom. Takes two minutes at most. Run it as the directory's user or as
    root. Ends with exit code 1 if anything is bad.""",
)
PROGRAMS = (DIRECTORY,)
