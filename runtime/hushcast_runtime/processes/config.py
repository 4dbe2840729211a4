"""Configuration: reads a daemon's settings, declares the common ones, refuses settings that could leak."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec

from hushcast_protocol.base.addresses import Address, is_onion, parse_address
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.roster import Network
from hushcast_runtime.files import read_most
from hushcast_runtime.processes.config_errors import in_words
from hushcast_runtime.toml import read_keys
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.transports.endpoints import Endpoint, parse_endpoint
from hushcast_runtime.transports.local_sockets import MAX_PATH
from hushcast_runtime.transports.tcp import TcpTransport
from hushcast_runtime.user_folders import state_home

MAX_CONFIG = 64 * 1024  # bytes
MAX_LARGE_CONFIG = 512 * 1024  # bytes, of a root of 1,023 brokers with 260 each, or a gateway of 1,000 users

READY_SOCKET = "ready.sock"
"""In the state directory: where a process that runs tells whether it is ready."""

PathText = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*\Z")]  # TOML can write what no path can hold

KeyText = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]  # 32 bytes in hexadecimal digits


def below_state_home(path: str) -> Path:
    """Return a path, a relative one below `$XDG_STATE_HOME` or `~/.local/state`; `UsageError` without one."""
    return Path(path) if Path(path).is_absolute() else state_home() / path


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of settings."""

    way_out: ClassVar[Mapping[str, str]] = {}
    """Where a key is missing: which command adds it."""
    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Keys that others have and this kind has not, with the reason."""
    most_bytes: ClassVar[int] = MAX_CONFIG
    """Of a file of this kind."""

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return what a file holds with what older files left out."""
        return values


class AnyNetworkTerms(Section, frozen=True, kw_only=True):
    """What all daemons of a network agree on, whatever its carrier."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    """Any name; it keeps networks apart."""
    epoch_seconds: Annotated[int, msgspec.Meta(ge=MIN_EPOCH, le=MAX_EPOCH)] = 3600
    """Length of an epoch."""


class NetworkTerms(AnyNetworkTerms, frozen=True, kw_only=True):
    """What all daemons of a network agree on whose scheme was published, and is hardened here."""

    profile: Literal["hardened", "paper"] = "hardened"
    """`hardened`, or `paper` for experiments with the scheme as published."""

    def identity(self) -> Network:
        """Return what tells networks apart, whatever their carrier."""
        return Network(self.name, self.profile, self.epoch_seconds)


class NetworkSection(NetworkTerms, frozen=True, kw_only=True):
    """Which network: the directory's operator gives these out."""

    def network(self) -> Network:
        """Return what the protocol calls the network."""
        return self.identity()


class AuthoritySection(Section, frozen=True, kw_only=True):
    """One of several directories that agree."""

    key: KeyText
    """Its public key, 64 hexadecimal digits."""
    address: str
    """Its address, `….onion:7411`."""


_CONTROL = "127.0.0.1:9051"  # of every tor that was not told otherwise


class TorSection(Section, frozen=True, kw_only=True):
    """Which tor carries everything."""

    mode: Literal["own", "system", "socks"] = "own"
    """`own` starts a tor process under the state directory; `system` uses one that runs already, `socks` its
    SOCKS port and nothing else: for clients."""
    control: str = _CONTROL
    """Control port of the system's tor: `127.0.0.1:PORT` or `unix:/PATH`."""
    socks: str = "127.0.0.1:9050"
    """SOCKS port of a tor that runs already."""
    services: PathText | None = None
    """A directory for Unix sockets by which the system's tor reaches onion services; otherwise ports, which
    nobody but tor gets through."""
    torrc: PathText | None = None
    """A file of extra torrc lines for a tor of our own."""
    pow: Literal["auto", "off"] = "auto"
    """Tor's proof-of-work defence of our onion services: `auto` uses it where tor has it."""

    def settings(self, state: Path) -> TorSettings:
        """Return what the transport wants; raises `UsageError`."""
        defended = self.pow == "auto"
        if self.mode == "own":
            if self.services:
                raise UsageError("services is for the system's tor: one of our own has sockets of its own")
            include = Path(self.torrc) if self.torrc else None
            return TorSettings(state_directory=state / "tor", torrc_include=include, defended=defended)
        if self.torrc:
            raise UsageError("torrc is for a tor of our own: set mode to own, or leave it out")
        if self.mode == "socks":
            if self.control != _CONTROL or self.services:
                raise UsageError("with mode socks there is no control port: take control and services out")
            return TorSettings(socks=parse_endpoint(self.socks))
        control, socks = parse_endpoint(self.control), parse_endpoint(self.socks)
        services = Path(self.services) if self.services else None
        return TorSettings(control=control, socks=socks, services=services, defended=defended)


class LogSection(Section, frozen=True, kw_only=True):
    """What is logged on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is told."""
    json: bool = False
    """One JSON object a line."""


SettingsT = TypeVar("SettingsT", bound="ProcessSettings")


class ProcessSettings(Section, frozen=True, kw_only=True):
    """Settings of every process that keeps a state and runs until a signal ends it."""

    program: str | None = None
    """Which program this is of; a file of before there was this key says nothing."""
    state: PathText
    """Directory of everything that is kept; made with mode 0700 when missing."""
    socket_group: str | None = None
    """A group that may use the daemon's sockets, too; the owner alone unless given."""
    metrics: str | None = None
    """Where metrics are served, `unix:/PATH` or `127.0.0.1:PORT`; off unless given."""
    log: LogSection = LogSection()

    live: ClassVar[frozenset[str]] = frozenset({"log"})
    """The keys at the top that a running process applies when it reads its configuration again."""
    program_name: ClassVar[str] = ""
    """What `program` says of settings of this kind."""

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return what a file holds; raise `UsageError` for the file of another program."""
        named = values.get("program", cls.program_name)
        if isinstance(named, str) and named != cls.program_name:
            raise UsageError(f'program: the file is of "{named}", and "{cls.program_name}" is to read it')
        return values

    def beside_live(self: SettingsT, others: SettingsT) -> SettingsT:
        """Return these settings, but all that a running process applies as others of the kind have it."""
        taken = {"program", *self.live}
        return msgspec.structs.replace(self, **{key: getattr(others, key) for key in taken})

    def state_path(self) -> Path:
        """Return the state directory."""
        return Path(self.state)

    def ready_socket(self) -> Path:
        """Return where a process that runs tells whether it is ready."""
        return self.state_path() / READY_SOCKET

    def metrics_endpoint(self) -> Endpoint | None:
        """Return where metrics are served; raises `UsageError`."""
        if self.metrics is None:
            return None
        try:
            return parse_endpoint(self.metrics)
        except UsageError:
            raise UsageError(
                "metrics: write 127.0.0.1:PORT or unix:/PATH; they never leave the machine"
            ) from None

    @property
    def is_watched(self) -> bool:
        """Whether this daemon may be inspected, as those of testnets are."""
        return False

    @property
    def stands_by(self) -> bool:
        """Whether it waits where another process has its state, and takes over."""
        return False

    def check_own(self) -> None:
        """Raise `UsageError` if the settings of this kind of process alone cannot be used."""

    def check(self) -> None:
        """Raise `UsageError` if these settings cannot be used, or contradict each other."""
        if not self.state_path().is_absolute():
            raise UsageError("state: give an absolute path, so that it does not depend on where you start")
        metrics = self.metrics_endpoint()
        if metrics is not None and metrics.path:
            check_path("metrics", Path(metrics.path))
        check_path("state", self.ready_socket())
        self.check_own()


class DaemonSettings(ProcessSettings, frozen=True, kw_only=True):
    """Settings of all daemons of the network."""

    transport: Literal["tor", "tcp"] = "tor"
    """`tor`, or `tcp` for trials on one machine: loopback only, and no anonymity at all."""
    tor: TorSection = TorSection()

    @property
    def is_reached(self) -> bool:
        """Whether others connect to it, so that it has an onion service."""
        return True

    def tcp(self) -> TcpTransport:
        """Return the transport for trials on one machine."""
        return TcpTransport()

    def check(self) -> None:
        """Raise `UsageError` if these settings could reach anything outside Tor, or contradict each other."""
        super().check()
        if self.transport == "tor":
            try:
                tor = self.tor.settings(Path(self.state))
            except UsageError as error:
                raise UsageError(f"tor: {error}") from None
            if self.is_reached and not tor.has_control:
                raise UsageError(
                    "tor.mode: this daemon has an onion service, which takes tor's control port: write "
                    '"system", with control, or "own"; "socks" is for clients'
                )


SectionT = TypeVar("SectionT", bound=Section)


def load_settings(path: Path, kind: type[SettingsT]) -> SettingsT:
    """Read a TOML file; raise `UsageError` that names the key and the reason if it cannot be used."""
    return parse_settings(read_most(path, kind.most_bytes), str(path), kind)


def parse_settings(data: bytes, where: str, kind: type[SettingsT]) -> SettingsT:
    """Return the settings in a file's bytes; raise `UsageError` that begins with `where` it came from."""
    settings = parse_toml(data, where, kind)
    try:
        settings.check()
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return settings


def parse_toml(data: bytes, where: str, kind: type[SectionT]) -> SectionT:
    """Return TOML as a section of this kind; raise `UsageError` with the key and the reason."""
    if len(data) > kind.most_bytes:
        raise UsageError(f"{where}: a configuration has at most {kind.most_bytes} bytes")
    keys = read_keys(data, where)
    try:
        values = kind.completed(keys)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {in_words(str(error), kind, values)}") from None


def check_path(key: str, path: Path) -> None:
    """Raise `UsageError` if no Unix socket can have this path, which follows from what `key` says."""
    if (more := len(bytes(path)) - MAX_PATH) > 0:
        raise UsageError(
            f"{key}: {path.name} would have a path of {MAX_PATH + more} bytes, and a Unix socket has "
            f"{MAX_PATH} at most: give one that is shorter by {more}"
        )


def reachable(key: str, text: str, transport: str) -> Address:
    """Return an address of a configuration if the transport may reach it; raise `UsageError`."""
    try:
        address = parse_address(text)
    except DecodeError as error:
        raise UsageError(f"{key}: {error}") from None
    if transport == "tor" and not is_onion(address):
        raise UsageError(f"{key}: with transport tor it must be an onion address; no other is safe")
    if transport == "tcp" and not address.startswith("127."):
        raise UsageError(f"{key}: with transport tcp it is a loopback address")
    return address
