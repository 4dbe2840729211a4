"""Configuration: every setting of both daemons, declared once; what could leak an address is refused here."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from hushcast_protocol.base.addresses import Address, is_onion, parse_address
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.roster import MAX_RELAYS, Network
from hushcast_protocol.overlay.profile import MAX_DEPTH, MAX_TREES, PROFILES, Profile
from hushcast_runtime.local_sockets import MAX_PATH
from hushcast_runtime.tor.endpoints import Endpoint, parse_endpoint
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.transports.streams import LOOPBACK

MAX_CONFIG = 64 * 1024  # bytes
MAX_INBOX_DAYS = 365  # days that a message may be kept: what is kept can be seized
MAX_PROBES_AN_EPOCH = 3600  # for a subscription: one a second of an hour
MIN_INBOX, MAX_INBOX = 1024**2, 1024**3  # bytes: room for a few of the largest messages, and a small disk's

_PathText = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*\Z")]  # TOML can write what no path can hold


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class NetworkSection(_Section, frozen=True, kw_only=True):
    """Which network: the directory's operator gives these out, and all daemons of it agree on them."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    """Any name; it keeps networks apart."""
    profile: Literal["hardened", "paper"] = "hardened"
    """`hardened`, or `paper` for experiments with the scheme as published."""
    epoch_seconds: Annotated[int, msgspec.Meta(ge=MIN_EPOCH, le=MAX_EPOCH)] = 3600
    """Length of an epoch."""

    def network(self) -> Network:
        """Return what the protocol calls the network."""
        return Network(self.name, self.profile, self.epoch_seconds)


class JoinedNetworkSection(NetworkSection, frozen=True, kw_only=True):
    """A network and where its directory is."""

    directory: str
    """The directory's address, `….onion:7411`."""
    directory_key: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """The directory's public key, 64 hexadecimal digits."""


class TorSection(_Section, frozen=True, kw_only=True):
    """Which tor carries everything."""

    mode: Literal["own", "system"] = "own"
    """`own` starts a tor process under the state directory; `system` uses one that runs already."""
    control: str = "127.0.0.1:9051"
    """Control port of the system's tor: `127.0.0.1:PORT` or `unix:/PATH`."""
    socks: str = "127.0.0.1:9050"
    """SOCKS port of the system's tor."""
    services: _PathText | None = None
    """A directory for Unix sockets by which the system's tor reaches onion services; otherwise ports, which
    nobody but tor gets through."""
    torrc: _PathText | None = None
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
        control, socks = parse_endpoint(self.control), parse_endpoint(self.socks)
        services = Path(self.services) if self.services else None
        return TorSettings(control=control, socks=socks, services=services, defended=defended)


class LogSection(_Section, frozen=True, kw_only=True):
    """What is told on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is told."""
    json: bool = False
    """One JSON object a line."""


class InboxSection(_Section, frozen=True, kw_only=True):
    """How long received messages are kept for the applications that do not acknowledge them."""

    max_age_days: Annotated[int, msgspec.Meta(ge=1, le=MAX_INBOX_DAYS)] = 21
    """Days that a message is kept at most."""
    max_bytes: Annotated[int, msgspec.Meta(ge=MIN_INBOX, le=MAX_INBOX)] = 64 * 1024**2
    """Bytes kept for one subscription; the oldest messages go first."""

    @property
    def max_age(self) -> float:
        """Seconds that a message is kept at most."""
        return self.max_age_days * 24 * 3600.0


class CoverageSection(_Section, frozen=True, kw_only=True):
    """How a subscriber finds out how much of the network reaches it."""

    probes_an_epoch: Annotated[int, msgspec.Meta(ge=0, le=MAX_PROBES_AN_EPOCH)] = 24
    """Probes for each subscription; each is a message to all subscribers of its topic. 0: none."""


class TestnetSection(_Section, frozen=True, kw_only=True):
    """Only for daemons of a testnet: what would be dangerous elsewhere."""

    name: Annotated[_PathText, msgspec.Meta(min_length=1, max_length=32)]
    """The daemon's name in the testnet."""
    traces: _PathText
    """Directory for traces: everything that this daemon sees and does, in clear."""
    began: float
    """Unix time from which traces count."""
    clock: _PathText | None = None
    """A file with the seconds by which this daemon's clock is wrong, for trials of faults."""
    host: str = LOOPBACK
    """With transport tcp: the loopback address that this daemon listens at and connects from."""
    path: str | None = None
    """With transport tcp: `127.0.0.1:PORT` of the relay that its connections pass, for trials of faults."""


class _DaemonSettings(_Section, frozen=True, kw_only=True):
    state: _PathText
    """Directory of everything that is kept; made with mode 0700 when missing."""
    transport: Literal["tor", "tcp"] = "tor"
    """`tor`, or `tcp` for trials on one machine: loopback only, and no anonymity at all."""
    socket_group: str | None = None
    """A group that may use the daemon's sockets, too; the owner alone unless given."""
    metrics: str | None = None
    """Where metrics are served, `unix:/PATH` or `127.0.0.1:PORT`; off unless given."""
    tor: TorSection = TorSection()
    log: LogSection = LogSection()

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


class NodeSettings(_DaemonSettings, frozen=True, kw_only=True):
    """Settings of `hushcast node run`."""

    role: Literal["relay", "client"]
    """`relay` forwards for others and is listed; `client` only publishes and subscribes."""
    network: JoinedNetworkSection
    socket: _PathText | None = None
    """The control socket; `control.sock` in the state directory unless given."""
    depth: Annotated[int, msgspec.Meta(ge=1, le=MAX_DEPTH)] | None = None
    """Levels of the trees of this daemon's subscriptions; the profile's unless given."""
    origins: Annotated[int, msgspec.Meta(ge=1, le=8)] | None = None
    """Random relays that a publication is dropped at; the profile's unless given."""
    trees: Annotated[int, msgspec.Meta(ge=1, le=MAX_TREES)] | None = None
    """Trees of a subscription, each as much traffic as the first; the profile's unless given."""
    inbox: InboxSection = InboxSection()
    coverage: CoverageSection = CoverageSection()
    testnet: TestnetSection | None = None

    def profile(self) -> Profile:
        """Return the network's profile with this daemon's own depth, origins and trees."""
        base = PROFILES[self.network.profile]
        return dataclasses.replace(
            base,
            depth=base.depth if self.depth is None else self.depth,
            origins=base.origins if self.origins is None else self.origins,
            trees=base.trees if self.trees is None else self.trees,
        )

    def socket_path(self) -> Path:
        """Return where the control socket is."""
        return Path(self.socket) if self.socket else Path(self.state) / "control.sock"


class DirectorySettings(_DaemonSettings, frozen=True, kw_only=True):
    """Settings of `hushcast directory run`."""

    network: NetworkSection
    first_roster: Annotated[int, msgspec.Meta(ge=1, le=MAX_RELAYS)] = 1
    """Relays that must have registered before the first roster is published."""


SettingsT = TypeVar("SettingsT", NodeSettings, DirectorySettings)


def load_settings(path: Path, kind: type[SettingsT]) -> SettingsT:
    """Read a TOML file; raise `UsageError` that names the key and the reason if it cannot be used."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG + 1)
        if len(data) > MAX_CONFIG:
            raise UsageError(f"{path}: a configuration has at most {MAX_CONFIG} bytes")
        settings = msgspec.convert(tomllib.loads(data.decode()), kind)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {_readable(str(error))}") from None
    except ValueError as error:  # not UTF-8, not TOML, or a number of thousands of digits
        raise UsageError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{path} is not TOML that anybody would write: it is nested too deeply") from None
    try:
        check_settings(settings)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return settings


def check_settings(settings: NodeSettings | DirectorySettings) -> None:
    """Raise `UsageError` if these settings could reach anything outside Tor, or contradict each other."""
    if not Path(settings.state).is_absolute():
        raise UsageError("state: give an absolute path, so that it does not depend on where you start")
    metrics = settings.metrics_endpoint()
    if metrics is not None and metrics.path:
        _check_path("metrics", Path(metrics.path))
    if isinstance(settings, NodeSettings):
        directory_address(settings)
        _check_testnet(settings)
        _check_path("socket", settings.socket_path())
    if settings.transport == "tor":
        try:
            settings.tor.settings(Path(settings.state))
        except UsageError as error:
            raise UsageError(f"tor: {error}") from None


def _check_path(key: str, path: Path) -> None:
    if len(bytes(path)) > MAX_PATH:
        raise UsageError(f"{key}: the path has over {MAX_PATH} bytes, which Unix sockets cannot have")


def _check_testnet(settings: NodeSettings) -> None:
    testnet = settings.testnet
    if testnet is None:
        return
    if settings.transport != "tcp" and (testnet.path is not None or testnet.host != LOOPBACK):
        raise UsageError("testnet: host and path belong to transport tcp")
    try:
        Endpoint(host=testnet.host, port=1)
        if testnet.path is not None:
            parse_endpoint(testnet.path)
    except UsageError:
        raise UsageError("testnet: host is a loopback address, and path one with its port") from None


def directory_address(settings: NodeSettings) -> Address:
    """Return the directory's address if the transport may reach it; raise `UsageError`."""
    try:
        address = parse_address(settings.network.directory)
    except DecodeError as error:
        raise UsageError(f"network.directory: {error}") from None
    if settings.transport == "tor" and not is_onion(address):
        raise UsageError(
            "network.directory: with transport tor it must be an onion address; no other is safe"
        )
    if settings.transport == "tcp" and not address.startswith("127."):
        raise UsageError("network.directory: with transport tcp it is a loopback address")
    return address


def _readable(error: str) -> str:
    # msgspec: "Expected `int`, got `str` - at `$.network.epoch_seconds`"
    reason, _, where = error.partition(" - at `$")
    key = where.strip("`.")
    return f"{key}: {reason}" if key else reason
