"""What a program is, in one value: its names, places and roles, and how what is heavy of it is loaded.

Importing the values of all programs loads no daemon: each function of a value imports what it needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from hushcast_protocol.base.findings import Finding
    from hushcast_runtime.processes.config import ProcessSettings
    from hushcast_runtime.storage.state_directory import KeyChange, StateKind
    from hushcast_runtime.storage.state_layout import Migration


def _first() -> tuple[Migration, ...]:
    from hushcast_runtime.storage.state_layout import FIRST

    return FIRST


OwnT = TypeVar("OwnT", bound="ProcessSettings")


@dataclass(frozen=True)
class ProgramRole:
    """What a program is run as; its configuration says which."""

    name: str
    """What its state, backups and the command line call it."""
    title: str
    """The first line of its first configuration."""
    made: str = ""
    """What `hushcast init` calls it, where that is not its name."""
    word: str | None = None
    """The value of `role` in its configuration; `None` where there is no such key."""
    founds: str | None = None
    """The carrier whose networks it makes; `None` for a program that joins one, or knows none."""
    restored: str = ""
    """What follows when a backup of its state is put back."""
    above: str = ""
    """Lines of its first configuration before `state`; in all of them {words} are filled in."""
    kept: str = "Keys and everything else that is kept. Private; one daemon alone uses it."
    """What lies in its state directory."""
    below: str = ""
    """Lines after the sockets."""
    sections: str = ""
    """Sections before `[log]`."""
    ending: str = ""
    """Sections after `[log]`."""
    admits: str = ""
    """Lines after the network that it makes."""

    @property
    def init(self) -> str:
        """What `hushcast init` calls it."""
        return self.made or self.name


@dataclass(frozen=True)
class Program(Generic[OwnT]):
    """A program that keeps a state and runs until a signal ends it."""

    name: str
    """`program = "…"` in its configuration."""
    group: str
    """The command with its subcommands, after `hushcast`."""
    roles: tuple[ProgramRole, ...]
    module: tuple[str, ...]
    """`python -m` runs it by this module, and these words before its configuration."""
    parse: Callable[[bytes, str], OwnT]
    """Returns the settings in a file's bytes; raises `UsageError` that begins with where it came from."""
    run: Callable[[Callable[[], OwnT]], None]
    """Runs it until a signal ends it; it reads its settings at its start, and again on SIGHUP."""
    examine: Callable[[OwnT], Awaitable[list[Finding]]] | None = None
    """Looks at it from outside; `None`: `hushcast doctor` asks it at its control socket."""
    state: Callable[[OwnT], StateKind] | None = None
    """Tells what its state directory holds; `None` for a program that is no daemon of a network."""
    migrations: Callable[[], tuple[Migration, ...]] = _first
    """In order, from version 0 of its state on; to the first ones a program adds its own."""
    summary: Callable[[OwnT], Mapping[str, Sequence[str]]] | None = None
    """Tells what `check-config` of its group shows; `None` where the group has none."""
    role_of: Callable[[OwnT], str] | None = None
    """Returns the name of the role of these settings, where there are several."""
    rotate: Callable[[OwnT, StateKind, tuple[str, ...], bool], KeyChange] | str = ""
    """Replaces keys of a daemon that does not run, all of `keys` where none are named; the flag: the old
    signing key hands over. Raises `UsageError`. A text says why there is nothing to replace."""
    keys: tuple[str, ...] = ()
    """The keys that `rotate` replaces."""
    needs: Callable[[Any], Any] = lambda network: network
    """Returns what it keeps of the section of a network that it joins."""
    complete: Callable[[str], str] = lambda text: text
    """Completes a first configuration with what others give out, so that it can be checked."""

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
    verb: str = "run"
    """The subcommand that runs it."""
    help: str = ""
    """What its group is for, where the command line has no such group."""
    run_help: str = ""
    doctor_help: str = ""

    @property
    def noun(self) -> str:
        """What people call it."""
        return self.name.replace("-", " ")

    @property
    def joins(self) -> bool:
        """Whether it joins networks that others make."""
        return self.state is not None and any(role.founds is None for role in self.roles)

    @property
    def run_command(self) -> str:
        """What people type to run it."""
        return f"hushcast {self.group} {self.verb}"

    @property
    def check_command(self) -> str:
        """What people type to have its configuration checked."""
        return "hushcast check-config" if self.state else f"hushcast {self.group} check-config"

    @property
    def doctor_command(self) -> str:
        """What people type to have it looked at."""
        return f"hushcast {self.group} doctor" if self.examine else "hushcast doctor"

    @property
    def version(self) -> int:
        """The version of the state that it writes."""
        return len(self.migrations())

    @cached_property
    def service_home(self) -> str:
        """The folder of its service in /etc and /var/lib."""
        return self.home or f"hushcast-{self.name}"

    @property
    def service_unit(self) -> str:
        """The systemd unit."""
        return self.unit or self.service_home

    def is_called(self, word: str) -> bool:
        """Tell whether a word means this program: its name, that of its group, or a role's."""
        return word in (self.name, self.group.split()[-1], *(role.word for role in self.roles))

    def role(self, settings: OwnT) -> ProgramRole:
        """Return the role of these settings."""
        name = self.role_of(settings) if self.role_of else self.roles[0].name
        return next(role for role in self.roles if role.name == name)

    def load(self, file: Path) -> OwnT:
        """Read a configuration; raise `UsageError` that names the key and the reason."""
        from hushcast_runtime.processes.config import MAX_ROOT_CONFIG, read_config

        return self.parse(read_config(file, MAX_ROOT_CONFIG), str(file))


MODULES = [
    *("hushcast_node", "hushcast_directory", "hushcast_central", "hushcast_brokers"),
    *("hushcast_gateway", "hushcast_located"),
]
"""The packages of all programs, by name alone: nothing of theirs is imported before somebody asks for it."""


def programs() -> tuple[Program[Any], ...]:
    """Return all programs."""
    return tuple(one for package in MODULES for one in import_module(f"{package}.program").PROGRAMS)


def program_called(word: str) -> Program[Any]:
    """Return the program that a word means; `LookupError` where there is none."""
    for one in programs():
        if one.is_called(word):
            return one
    raise LookupError(word)


def role_named(name: str) -> tuple[Program[Any], ProgramRole]:
    """Return the program and role by the role's name, or by what `hushcast init` calls it."""
    found = ((one, role) for one in programs() for role in one.roles if name in (role.init, role.name))
    return next(found)
