"""Runs the directory as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushcast_directory import program
from hushcast_directory.server.closed_network import read_names
from hushcast_directory.server.configured_set import ConfiguredSet, SetOfOne
from hushcast_directory.server.counters import DIRECTORY_COUNTERS
from hushcast_directory.server.daemon import Directory, DirectoryParts
from hushcast_directory.server.directory_server import MAX_CONNECTIONS, MAX_FETCHES
from hushcast_directory.server.doctor import (
    examine_alone,
    examine_closed,
    examine_expelled,
    examine_one_of_several,
    examine_wire,
)
from hushcast_directory.server.expulsion_list import ExpulsionList, follow
from hushcast_directory.server.reachability_checks import MAX_CHECKS, MAX_RENEWALS
from hushcast_directory.server.roll import Roll
from hushcast_directory.server.settings import DirectorySettings
from hushcast_protocol.authorities.authority_set import MAX_AUTHORITIES
from hushcast_protocol.authorities.expulsion import ExpelledRelay
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.wire import PublicKey, RelayId
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.processes.doctor import DaemonKind
from hushcast_runtime.processes.examined_process import ExaminedDaemon, Process, ProcessContext
from hushcast_runtime.processes.network_file import network_of_several, network_section
from hushcast_runtime.processes.process import Load
from hushcast_runtime.processes.process_frame import run_process

NETWORK_FILE = "network.toml"
"""In the state directory: the `[network]` section that daemons of the network need."""
KEY_FILES = ("directory.key", "service.key")
"""In the state directory: the key that signs rosters, and that of the onion service."""
DIRECTORY = DaemonKind(
    program.DIRECTORY,
    # Who asks, relays that are reached because of these and of others, links of authorities, the database.
    MAX_CONNECTIONS + MAX_FETCHES + 2 * (MAX_RENEWALS + MAX_CHECKS) + 6 * MAX_AUTHORITIES + 64,
    DIRECTORY_COUNTERS,
    {},
    KEY_FILES[:1],  # the address may be a new one, after `key rotate service`
)


def run_directory(load: Load[DirectorySettings]) -> None:
    """Run the directory until SIGTERM or SIGINT; raises the `HushcastError` that ended it.

    SIGHUP makes it list the relays that a closed network names then, and vote for whom its configuration has;
    the list of expelled relays it follows by itself.
    """
    run_process(load, _Directory)


class _Directory(Process):
    def __init__(self, settings: DirectorySettings) -> None:
        super().__init__(settings, DIRECTORY)
        self._own = self._newest = settings
        self._names = _names(settings)
        self._expelled = _expelled_file(settings)
        self._left_out = _left_out(self._expelled)
        self._seed: Seed | None = None
        self._directory: Directory | None = None

    def apply(self, fresh: DirectorySettings) -> None:
        """Take other lists of relays and what is voted for; `UsageError`, which changes nothing."""
        fresh = self._own.beside_live(fresh)
        names, expelled = _names(fresh), _expelled_file(fresh)
        left_out = _left_out(expelled)
        sitting = None if self._seed is None else _sitting(fresh, self._key)
        if self._directory is not None and sitting is not None:
            self._directory.agreeing.sit(sitting)
            self._directory.roll.confine(names)
        self._names, self._expelled, self._newest = names, expelled, fresh
        self._expel(left_out)

    def _expel(self, left_out: Sequence[ExpelledRelay]) -> None:
        self._left_out = left_out
        if self._directory is not None:
            self._directory.roll.expel(left_out)

    @property
    def _key(self) -> PublicKey:
        assert self._seed is not None
        return self._seed.public()

    def _prepare(self) -> None:
        """Also see, before tor is started, that this directory is one of those that it names."""
        super()._prepare()
        seed = self._seed = load_seed(self._own.state_path() / KEY_FILES[0], self._env.randomness)
        self._newest.sitting(seed.public())

    def _make(self, around: ProcessContext) -> Directory:
        settings, seed = self._own, self._seed
        assert seed is not None
        network, sitting = settings.network.network(), _sitting(self._newest, self._key)
        roll = Roll(network, seed, around.store)
        roll.confine(self._names)
        roll.expel(self._left_out)
        service = load_seed(settings.state_path() / KEY_FILES[1], around.env.randomness)
        directory = self._directory = Directory(
            DirectoryParts(
                roll, service, sitting, around.env, around.transport, around.store, around.counters
            )
        )
        return directory

    def _give_out(self) -> None:
        assert self._directory is not None
        assert self._directory.listener is not None
        pause = self._directory.roll.calendar.lead
        self._living.start_soon(follow, lambda: self._expelled, self._expel, pause)
        path = self._own.state_path() / NETWORK_FILE
        _write_network_file(path, self._own, self._directory.listener.address, self._key)

    def _problem(self, daemon: ExaminedDaemon) -> str | None:
        assert self._directory is not None
        agreeing, calendar = self._directory.agreeing, self._directory.roll.calendar
        left = examine_wire(agreeing.machine, calendar, calendar.epoch(self._directory.clock.now()))
        return left[0].found if left else agreeing.problem

    def _own_findings(self) -> list[Finding]:
        directory = self._directory
        if directory is None or directory.listener is None:
            return []
        roll, agreeing, now = directory.roll, directory.agreeing, directory.clock.now()
        known, epoch = roll.count(now), roll.calendar.epoch(now)
        wire = examine_wire(agreeing.machine, roll.calendar, epoch) or directory.other_wires.examine()
        found = [*wire, *examine_closed(self._names, roll.listed())]
        if self._expelled is not None:
            found.append(examine_expelled(len(roll.expelled(epoch)), len(self._left_out)))
        if self._own.authorities is None and not agreeing.peers.count:
            return examine_alone(agreeing, known, self._own.first_roster, epoch) + found
        state, first = self._own.state_path(), self._own.first_roster
        return examine_one_of_several(agreeing, state, known, first, epoch) + found

    def _doing(self) -> str:
        relays = 0 if self._directory is None else self._directory.agreeing.relays
        return f"working, {relays} relays in the roster"


def _sitting(settings: DirectorySettings, key: PublicKey) -> ConfiguredSet | SetOfOne:
    return settings.sitting(key) or SetOfOne(settings.first_roster, settings.wire)


def _names(settings: DirectorySettings) -> frozenset[RelayId] | None:
    return None if settings.relays is None else read_names(Path(settings.relays))


def _expelled_file(settings: DirectorySettings) -> ExpulsionList | None:
    return None if settings.expelled is None else ExpulsionList(Path(settings.expelled))


def _left_out(file: ExpulsionList | None) -> Sequence[ExpelledRelay]:
    return (file.changed() or ()) if file is not None else ()


def _write_network_file(path: Path, settings: DirectorySettings, address: Address, key: PublicKey) -> None:
    several = settings.authorities
    if several is None or len(several.members) == 1:
        text = network_section(settings.network, address, key.hex())
    else:
        text = network_of_several(settings.network, several.members, several.quorum)
    write_private(path, text.encode())
