"""Settings of a gateway: every one declared once; what would let strangers in is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from hushcast_gateway.announcement.announcement import problem_of_announcement
from hushcast_gateway.operators.questions import OPERATORS_SOCKET
from hushcast_gateway.sections.access_sections import AccessSection, FilterText, UserSection
from hushcast_gateway.sections.history_section import HistorySection
from hushcast_gateway.sections.keys_section import KeysSection
from hushcast_gateway.sections.limits_section import LimitsSection
from hushcast_gateway.sections.listen_section import MAX_LISTENERS, ListenSection
from hushcast_gateway.sections.purposes_section import (
    CONFIGURATION,
    PurposesSection,
    PurposeText,
)
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.limits import LARGEST_PACKET, MAX_PACKET
from hushcast_protocol.mqtt.topics import access
from hushcast_protocol.mqtt.topics.access import CLIENT, USER
from hushcast_protocol.mqtt.topics.topic_filters import intersects, is_filter, normal
from hushcast_runtime.processes.config import (
    MAX_LARGE_CONFIG,
    PathText,
    ProcessSettings,
    Section,
    below_state_home,
    check_path,
)
from hushcast_runtime.processes.doctors_socket import DOCTORS_SOCKET

MAX_USERS = 1_000
MAX_USER_NAME = 64  # characters
MAX_WAY = 1_024  # aliases, and maps

AliasName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]


class AliasSection(Section, frozen=True, kw_only=True):
    """A private topic of the network by a name that may stand in MQTT topics."""

    name: AliasName
    """The second level of its MQTT topics: `hush/NAME/…`."""
    link_file: PathText
    """A file of mode 0600 with the topic's link, which is a secret and stands nowhere else."""
    label: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    """The label attribute of the topic that holds the first level of what follows: relays route by it."""
    purpose: PurposeText | None = None
    """What all who have the link use messages for; what is reserved and not for this does not travel."""
    reservations: bool = False
    """Whether what is reserved travels with its reservations, for the clients of gateways that go by them."""
    plain: bool = False
    """Whether what is published to `hush/NAME` itself travels as a bare payload, for plain programs."""
    keys: KeysSection | None = None
    """Keys by which messages open for purposes alone, whoever has the link."""


class MapSection(Section, frozen=True, kw_only=True, rename={"from_": "from"}):
    """MQTT topics that a private topic of the network carries, whatever they begin with."""

    from_: FilterText
    """A topic filter that ends in `#`: what it matches travels."""
    to: AliasName
    """The alias that carries it."""


class NetworkTopicsSection(Section, frozen=True, kw_only=True):
    """Which topics travel over the network."""

    alias: Annotated[tuple[AliasSection, ...], Meta(max_length=MAX_WAY)] = ()
    map: Annotated[tuple[MapSection, ...], Meta(max_length=MAX_WAY)] = ()


class DaemonSection(Section, frozen=True, kw_only=True):
    """The daemon by which topics travel."""

    socket: PathText | None = None
    """Its control socket; without one all topics stay at this gateway, and those of `hush/` are refused."""


class GatewaySettings(ProcessSettings, frozen=True, kw_only=True):
    """Settings of `hushcast run gateway`."""

    program_name: ClassVar[str] = "gateway"
    """What `program` says in its file."""
    most_bytes: ClassVar[int] = MAX_LARGE_CONFIG
    """Of a file: as many users as there may be fit into it."""
    live: ClassVar[frozenset[str]] = frozenset({"log", "users", "anonymous"})
    """The keys that a running gateway applies."""

    state: PathText = "hushcast-gateway"
    """Directory of all that is kept; a relative path is below `$XDG_STATE_HOME` or `~/.local/state`."""
    standby: bool = False
    """Whether it waits where another gateway has `state`, and takes over from that one."""
    listen: Annotated[tuple[ListenSection, ...], Meta(max_length=MAX_LISTENERS)] = ()
    """Where clients connect; `127.0.0.1:1883` and the Unix socket `mqtt.sock` in `state` unless given."""
    announce: str | None = None
    """An IPv4 address of this machine whose network is told by mDNS what listens there; none unless given."""
    users: Annotated[Mapping[str, UserSection], Meta(max_length=MAX_USERS)] = field(default_factory=dict)
    """The users by name."""
    anonymous: AccessSection | None = None
    """What clients of this machine that give no name may do; they are refused unless given."""
    maximum_packet: Annotated[int, Meta(ge=4_096, le=LARGEST_PACKET)] = MAX_PACKET
    """Bytes of the largest packet that is taken; the standard's largest is told to nobody."""
    limits: LimitsSection = LimitsSection()
    """Bounds of what clients may have; where one is met, `hushcast doctor gateway` says which."""
    puback: Literal["disk", "relay"] = "disk"
    """When a message for the network is acknowledged: on this machine's disk, or taken by a relay."""
    properties: Literal["all", "known", "none"] = "all"
    """Which properties of version 5 travel with a message, inside its seal."""
    refresh_retained: Annotated[int, Meta(ge=0, le=504)] = 0
    """Hours after which retained messages are published again for gateways that came later; 0: never."""
    will_jitter: Annotated[int, Meta(ge=0, le=3_600)] = 60
    """Seconds, at random up to so many, that a will waits before it travels."""
    order_wait: Annotated[int, Meta(ge=0, le=60)] = 45
    """Seconds that what comes before its turn waits for what lacks; 0: all is given out as it comes."""
    history: HistorySection = HistorySection()
    purposes: PurposesSection | None = None
    """What messages may be used for; anything unless given."""
    daemon: DaemonSection = DaemonSection()
    gateway: NetworkTopicsSection = NetworkTopicsSection()

    def beside_live(self, others: GatewaySettings) -> GatewaySettings:
        """Return these settings, but all that a running gateway applies as others have it."""
        keys = {alias.name: alias.keys for alias in others.gateway.alias}
        aliases = tuple(
            replace(alias, keys=keys[alias.name]) if alias.keys and keys.get(alias.name) else alias
            for alias in self.gateway.alias
        )
        purposes = self.purposes
        if purposes is not None and others.purposes is not None:
            purposes = replace(others.purposes, mode=purposes.mode, store=purposes.store)
        fresh = replace(self, purposes=purposes, gateway=replace(self.gateway, alias=aliases))
        return super(GatewaySettings, fresh).beside_live(others)

    def state_path(self) -> Path:
        """Return the state directory."""
        return below_state_home(self.state)

    @property
    def stands_by(self) -> bool:
        """Whether it waits where another gateway has the state directory."""
        return self.standby

    def doctors_socket(self) -> Path:
        """Return where a gateway that runs is asked by its doctor."""
        return self.state_path() / DOCTORS_SOCKET

    def operators_socket(self) -> Path:
        """Return where whoever runs it asks a gateway that runs."""
        return self.state_path() / OPERATORS_SOCKET

    def listeners(self) -> tuple[ListenSection, ...]:
        """Return where clients connect: this machine alone unless something was given."""
        socket = ListenSection(kind="unix", path=str(self.state_path() / "mqtt.sock"))
        return self.listen or (ListenSection(kind="tcp", port=1883), socket)

    def speakers(self) -> dict[str, AccessSection]:
        """Return the sections of all who may connect, by user; the empty name is anybody's."""
        return {**self.users, **({"": self.anonymous} if self.anonymous is not None else {})}

    def named_purposes(self) -> Iterator[tuple[str, str]]:
        """Yield each key that names a purpose, with that."""
        if self.purposes is not None:
            yield from self.purposes.named()
        for name, section in self.speakers().items():
            yield from section.named_purposes(f"users.{name}" if name else "anonymous")
        for number, alias in enumerate(self.gateway.alias, 1):
            if alias.purpose is not None:
                yield f"gateway.alias #{number}.purpose", alias.purpose

    def check_own(self) -> None:
        """Raise `UsageError` where strangers could come in, nobody can, or a value cannot be meant."""
        check_path("state", self.operators_socket())  # the longest in it
        for where, problem in self._problems():
            raise UsageError(f"{where}: {problem}")

    def _problems(self) -> Iterator[tuple[str, str]]:
        yield from self._problems_of_users()
        listeners = self.listeners()
        for number, listener in enumerate(listeners, 1):
            where = f"listen #{number}" if self.listen else "listen"
            if (problem := listener.problem()) is not None:
                yield where, problem
            if not listener.is_local and not any(
                user.password or user.tokens or user.certificate for user in self.users.values()
            ):
                yield where, NO_USERS
            if listener.push_user is not None and listener.push_user not in self.users:
                yield f"{where}.push_user", f"there is no user {listener.push_user}: add it to [users]"
            if listener.name in (other.name for other in listeners[: number - 1]):
                yield where, "another listener is at the same place: give one of them another"
        if self.announce is not None and (found := problem_of_announcement(self.announce, listeners)):
            yield "announce", found
        yield from self.history.problems()
        yield from self._problems_of_topics()
        yield from self._problems_of_purposes()

    def _problems_of_purposes(self) -> Iterator[tuple[str, str]]:
        if self.purposes is not None:
            yield from self.purposes.problems()
            if self.limits.delayed:
                yield "limits.delayed", NOT_DELAYED
        for number, alias in enumerate(self.gateway.alias, 1):
            where = f"gateway.alias #{number}"
            if self.purposes is None and alias.purpose is not None:
                yield f"{where}.purpose", NO_PURPOSES
            if alias.reservations:
                yield from self._problems_of_carrying(f"{where}.reservations", alias)
            if alias.keys is not None:
                yield from self._problems_of_keys(f"{where}.keys", alias.keys, alias.purpose)
        for name, section in self.speakers().items():
            where = f"users.{name}" if name else "anonymous"
            if self.purposes is None and section.speaks_of_purposes():
                yield where, NO_PURPOSES
            if name == CONFIGURATION:
                yield where, "this name stands for the configuration's own reservations: take another"
            yield from section.problems_of_purposes(where, self.users)

    def _problems_of_carrying(self, where: str, alias: AliasSection) -> Iterator[tuple[str, str]]:
        if self.purposes is None:
            yield where, NO_PURPOSES
        if alias.purpose is not None:
            yield where, "each reader's gateway asks for that reader's purpose: take the alias's purpose out"
        if alias.keys is not None:
            yield where, "an alias with keys seals for what is reserved: take one of the two out"

    def _problems_of_keys(
        self, where: str, keys: KeysSection, purpose: str | None
    ) -> Iterator[tuple[str, str]]:
        if self.purposes is None:
            yield where, NO_PURPOSES
        if purpose is not None:
            yield where, "readers have purposes by their grants: take the alias's purpose out"
        if keys.grant_files and keys.reader_key_file is None:
            yield f"{where}.reader_key_file", "grants are sealed to a key: name its file"
        for key, path in keys.paths():
            if not Path(path).is_absolute():
                yield f"{where}.{key}", "give an absolute path, so that it does not depend on where you start"

    def _problems_of_users(self) -> Iterator[tuple[str, str]]:
        if not self.users and self.anonymous is None:
            yield "users", NOBODY
        if self.anonymous is not None:
            yield from self.anonymous.problems("anonymous", frozenset())
        listeners = self.listeners()
        seen: set[int | str] = set()
        spelled = Counter(map(normal, self.users))
        for name, user in self.users.items():
            where = f"users.{name}" if name.isprintable() else "users"
            if spelled[normal(name)] > 1:
                yield where, "another user has this name in other letters of Unicode: topics of both are one"
            if not is_user_name(name):
                yield where, f"a name has 1 to {MAX_USER_NAME} characters that can be printed"
            yield from user.problems(where, frozenset({USER, CLIENT} if access.is_level(name) else {CLIENT}))
            yield from user.problems_of_identity(where)
            if user.certificate is not None and not any(listener.client_ca for listener in listeners):
                yield (
                    f"{where}.certificate",
                    "no listener asks for certificates: give a tls or wss one `client_ca`",
                )
            if user.uid and not any(listener.path is not None for listener in listeners):
                yield f"{where}.uid", "there is no Unix socket to connect at: add a listener of kind unix"
            for one in (
                *user.uid,
                *user.tokens,
                *([user.certificate] if user.certificate is not None else ()),
            ):
                if one in seen:
                    shown = "a token" if one in user.tokens else one
                    yield where, f"{shown} is another user already: name it once"
                seen.add(one)

    def _problems_of_topics(self) -> Iterator[tuple[str, str]]:
        if self.daemon.socket is not None:
            if not Path(self.daemon.socket).is_absolute():
                yield "daemon.socket", "give an absolute path, so that it does not depend on where you start"
            check_path("daemon.socket", Path(self.daemon.socket))
        names: set[str] = set()
        for number, alias in enumerate(self.gateway.alias, 1):
            where = f"gateway.alias #{number}"
            if alias.name == "open":
                yield f"{where}.name", "hush/open/ is where open topics are: take another name"
            if alias.name in names:
                yield f"{where}.name", f"{alias.name} is there already: take another name"
            if not Path(alias.link_file).is_absolute():
                yield (
                    f"{where}.link_file",
                    "give an absolute path, so that it does not depend on where you start",
                )
            names.add(alias.name)
        for number, way in enumerate(self.gateway.map, 1):
            where = f"gateway.map #{number}"
            if (problem := _problem_of_map(way.from_)) is not None:
                yield f"{where}.from", problem
            if way.to not in names:
                yield f"{where}.to", f"there is no alias {way.to}: add [[gateway.alias]] with this name"
            others = (normal(other.from_) for other in self.gateway.map[: number - 1])
            if any(intersects(normal(way.from_), other) for other in others):
                yield f"{where}.from", "another map has some of these topics, too: each travels by one alias"
        if self.gateway.alias and self.daemon.socket is None:
            yield "daemon.socket", "aliases travel by a daemon: name its control socket here"


NOBODY = (
    "nobody could connect: add [users.NAME] with what `hushcast gateway passwd NAME` prints, or [anonymous] "
    "for all programs of this machine"
)
NO_PURPOSES = "purposes are decided only where there is a section [purposes]: add it"
NOT_DELAYED = "of what waits nobody asks what it may be used for: take this out, or the section [purposes]"
NO_USERS = (
    "other machines reach this address, and there is no user who could connect from there: add [users.NAME] "
    "with what `hushcast gateway passwd NAME` prints, or listen at 127.0.0.1"
)


def is_user_name(name: str) -> bool:
    """Tell whether this can be the name of a user."""
    return 1 <= len(name) <= MAX_USER_NAME and name.isprintable()


def _problem_of_map(wanted: str) -> str | None:
    if not is_filter(wanted) or wanted == "#" or not wanted.endswith("/#") or "+" in wanted:
        return "write levels and then #, as in home/#: all below them travels"
    if wanted.startswith("$") or wanted.split("/")[0] == "hush":
        return "topics of $… stay at the gateway, and those of hush/ travel by their own names"
    return None
