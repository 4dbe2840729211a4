"""What a program is, in one value: its names, places and roles, and where the rest of it is.

Importing the values of all programs loads no daemon: what is heavy stands as a dotted path.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushcast_runtime.storage.state_directory import StateKind


@dataclass(frozen=True)
class DottedPath:
    """What stands at a dotted path, which is imported when somebody asks for it."""

    path: str

    def load(self) -> Any:
        """Import it."""
        module, _, name = self.path.rpartition(".")
        return getattr(import_module(module), name)


@dataclass(frozen=True)
class ProgramRole:
    """What a program is run as; its configuration says which."""

    name: str
    """What its state, backups and the command line call it."""
    title: str
    """The first line of its first configuration."""
    init_name: str = ""
    """What `hushcast init` calls it, where that is not its name."""
    word: str | None = None
    """The value of `role` in its configuration; `None` where there is no such key."""
    founded: str | None = None
    """The carrier whose networks it makes; `None` for a program that joins one, or knows none."""
    restore_note: str = ""
    """What follows when a backup of its state is put back."""
    head: str = ""
    """Lines of its first configuration before `state`; in all of them {words} are filled in."""
    state_help: str = "Keys and everything else that is kept. Private; one daemon alone uses it."
    """What lies in its state directory."""
    more_keys: str = ""
    """Lines after the sockets."""
    sections: str = ""
    """Sections before `[log]`."""
    ending: str = ""
    """Sections after `[log]`."""
    admission: str = ""
    """Lines after the network that it makes."""

    @property
    def init(self) -> str:
        """What `hushcast init` calls it."""
        return self.init_name or self.name


@dataclass(frozen=True)
class Program:
    """A program that keeps a state and runs until a signal ends it."""

    name: str
    """`program = "…"` in its configuration."""
    roles: tuple[ProgramRole, ...]
    module: tuple[str, ...]
    """`python -m` runs it by this module, and these words before its configuration."""
    settings: DottedPath
    """The class of its settings, or a function of a file's bytes and where they came from that tells them."""
    run: DottedPath
    """A function that runs it until a signal ends it, of what reads its settings."""
    examine: DottedPath = DottedPath("hushcast_runtime.processes.doctor.examine_from_outside")
    """A coroutine of settings and program: looks at it from outside, whether it runs or not."""
    key_files: DottedPath | None = None
    """The names of its key files, or a function of the settings that tells them; `None` for a program that
    is no daemon of a network."""
    note_restored: DottedPath | None = None
    """A function that notes in a database that it was restored, as `StateKind` has it."""
    migrations: DottedPath = DottedPath("hushcast_runtime.storage.state_layout.FIRST")
    """In order, from version 0 of its state on; to the first ones a program adds its own."""
    summary: DottedPath | None = None
    """A function of the settings: what `check-config --show` shows; `None` where there is no more to tell."""
    role_name: str = ""
    """The name of its role, with {role} for the word in its configuration; its only role's unless given."""
    rotate: DottedPath | str = ""
    """A function of settings, `StateKind`, names of keys and whether the old signing key hands over, which
    replaces keys of a daemon that does not run, and returns a `KeyChange`; or why it has none to replace."""
    key_names: tuple[str, ...] = ()
    """The keys that it replaces."""
    needed: DottedPath | None = None
    """A function of the section of a network that it joins: what it keeps of that; all unless given."""
    example: str = ""
    """What others give out for it, a section or keys at the top: with that its first file is whole."""

    home: str = ""
    """Folder of its service in /etc and /var/lib, where that is not named after it."""
    config: str = ""
    """File of its service in that folder, where that is not named after it."""
    unit: str = ""
    """The systemd unit, where that is not named as its folder."""
    socket: str | None = None
    """Its socket in the runtime directory; `None`: in the state directory."""
    socket_help: str = ""
    """What its first configuration says of that socket; nothing: it has no key `socket`."""
    group_help: str = ""
    """What a service's says of the members of `socket_group`; nothing: it names none."""
    has_instances: bool = False
    """Whether a machine may run several, each with a name."""
    are_apart: bool = False
    """Whether each role has places of its own where a user runs it."""

    @property
    def noun(self) -> str:
        """What people call it."""
        return self.name.replace("-", " ")

    @property
    def joins(self) -> bool:
        """Whether it joins networks that others make."""
        return self.key_files is not None and any(role.founded is None for role in self.roles)

    @property
    def run_command(self) -> str:
        """What people type to run it."""
        return f"hushcast run {self.name}"

    @property
    def version(self) -> int:
        """The version of the state that it writes."""
        return len(self.migrations.load())

    @property
    def service_home(self) -> str:
        """The folder of its service in /etc and /var/lib."""
        return self.home or f"hushcast-{self.name}"

    @property
    def service_unit(self) -> str:
        """The systemd unit."""
        return self.unit or self.service_home

    def is_called(self, word: str) -> bool:
        """Tell whether a word means this program: its name, the last part of that, or a role's."""
        return word in (self.name, self.name.rpartition("-")[2], *(role.word for role in self.roles))

    def role(self, settings: Any) -> ProgramRole:
        """Return the role of these settings."""
        if not self.role_name:
            return self.roles[0]
        name = self.role_name.format(role=settings.role)
        return next(role for role in self.roles if role.name == name)

    def load(self, file: Path) -> Any:
        """Read a configuration; raise `UsageError` that names the key and the reason."""
        from hushcast_runtime.files import read_most
        from hushcast_runtime.processes.config import MAX_LARGE_CONFIG

        return self.parse(read_most(file, MAX_LARGE_CONFIG), str(file))

    def start(self, file: Path) -> None:
        """Run it by a configuration, until a signal ends it; raise `UsageError` as `load` does."""
        from hushcast_runtime.processes.openssl import spare_openssl

        spare_openssl()
        self.run.load()(lambda: self.load(file))

    def parse(self, data: bytes, where: str) -> Any:
        """Return the settings in a file's bytes; raise `UsageError` that begins with `where` it came from."""
        from hushcast_runtime.processes.config import parse_settings

        found = self.settings.load()
        return parse_settings(data, where, found) if isinstance(found, type) else found(data, where)

    def completed(self, first: str) -> str:
        """Return a first configuration with what others give out, as `check-config` can look at it."""
        return first + self.example if self.example.startswith("[") else self.example + first

    def state(self, settings: Any) -> StateKind:
        """Return what the state directory of a network's daemon holds."""
        from hushcast_runtime.storage.state_directory import StateKind

        assert self.key_files is not None
        keys = self.key_files.load()
        return StateKind(
            self.role(settings).name,
            settings.network.identity(),
            keys(settings) if callable(keys) else keys,
            self.version,
            self.note_restored.load() if self.note_restored else None,
        )


SOMEBODY = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
"""A public key, for examples."""
SOMEWHERE = "hnvcppgow2sc2yvdvdicu3ynonsteflxdxrehjr2ybekdc2z3iu63yid.onion:7411"
"""The onion address of that key."""
MODULES = [
    *("hushcast_node", "hushcast_directory", "hushcast_central", "hushcast_brokers"),
    *("hushcast_gateway", "hushcast_located"),
]
"""The packages of all programs, by name alone: nothing of theirs is imported before somebody asks for it."""


def programs() -> tuple[Program, ...]:
    """Return all programs."""
    return tuple(one for package in MODULES for one in import_module(f"{package}.program").PROGRAMS)


def program_called(word: str) -> Program:
    """Return the program that a word means; `LookupError` where there is none."""
    for one in programs():
        if one.is_called(word):
            return one
    raise LookupError(word)


def role_called(word: str) -> tuple[Program, ProgramRole]:
    """Return a program and its role by what `hushcast init` calls that, by its name, or the program's."""
    found = [(one, role) for one in programs() for role in one.roles]
    of_programs = {one.name: (one, role) for one, role in reversed(found)}
    made = {role.init: (one, role) for one, role in reversed(found)}
    return {**of_programs, **{role.name: (one, role) for one, role in found}, **made}[word]
