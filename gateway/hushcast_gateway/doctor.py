"""The doctor: looks at what a gateway needs to work, whether it runs or not, and says what to do."""

from __future__ import annotations

import grp
import os
import pwd
import resource
import socket as sockets
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

import trio

from hushcast.control_messages import Finding
from hushcast_gateway.broker_state import look_into
from hushcast_gateway.clients.tls import days_left
from hushcast_gateway.program import GATEWAY
from hushcast_gateway.purposes.alias_keys import read_files
from hushcast_gateway.purposes.standing_reservations import orphans
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_gateway.sections.purposes_section import strangers, vocabulary_of
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import HushcastError, UsageError
from hushcast_protocol.base.findings import bad, good, warning
from hushcast_protocol.mqtt.topics.topic_filters import intersects
from hushcast_protocol.mqtt.topics.ways import OWN, Ways
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors, is_purpose
from hushcast_runtime.environment import system_environment
from hushcast_runtime.extras import how_to_get
from hushcast_runtime.processes.doctor import examine_state
from hushcast_runtime.processes.doctors_socket import ask_findings
from hushcast_runtime.processes.program import Program
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.transports.local_sockets import REACHED_WITHIN, why_unreached
from hushcast_runtime.wording import counted

SOON = 14  # days before its end in which a certificate should be replaced
FILES_BESIDE = 512  # open files beside the clients': strangers, the database, listeners


class GatewayDoctor:
    """Examines a gateway from outside, by its configuration."""

    def __init__(self, settings: GatewaySettings, now: float) -> None:
        """`now` is Unix time."""
        self._settings = settings
        self._now = now
        self._pid: int | None = None

    async def examine(self) -> list[Finding]:
        """Return a finding for each thing looked at; takes a few seconds at most."""
        state = self._settings.state_path()
        looked, *others = await examine_state(state, GATEWAY.version, self._examine)
        if looked.verdict == "good" and state.exists():
            runs = f"the gateway runs (pid {self._pid})" if self._pid is not None else "no gateway runs"
            looked = good("state", f"{state}, {runs}")
        return [looked, *others]

    async def _examine(self, looked: Finding, pid: int | None) -> list[Finding]:
        self._pid = pid
        found: list[Finding] = []
        for number, place in enumerate(self._settings.listeners(), 1):
            found += [await check(number, place) for check in self._checks(place)]
        found += [self._users(), self._files()]
        found += self._links()
        found += [*self._purposes(), *self._orphans(), *self._keys(), *self._kept_back()]
        found.append(await self._daemon())
        return found if pid is None else [*found, *await self._inside()]

    def _checks(self, place: ListenSection) -> Iterator[Callable[[int, ListenSection], Awaitable[Finding]]]:
        yield self._reached if self._pid is not None else self._free
        if place.is_secure:
            yield self._certificate
        if place.has_websockets or place.speaks_http:
            yield self._extra

    async def _inside(self) -> list[Finding]:
        """Return what a gateway that runs tells of itself."""
        inside = await ask_findings(self._settings.doctors_socket())
        if inside is not None:
            return inside
        return [warning("gateway", "it runs, and tells nothing of itself", "look at its log, or restart it")]

    async def _free(self, number: int, place: ListenSection) -> Finding:
        check = f"listen #{number}"
        if place.path is not None:
            return self._socket(check, place)
        try:
            for listener in await trio.open_tcp_listeners(place.port or 0, host=place.host):
                await listener.aclose()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "it cannot be opened"
            advice = "give another port or address, or end the program that has it (`ss -ltnp` names it)"
            return bad(check, f"{place.name}: {reason}", advice)
        return good(check, f"{place.title} is free")

    def _socket(self, check: str, place: ListenSection) -> Finding:
        path = Path(place.path or "")
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
            if probe.connect_ex(str(path)) == 0:
                return bad(check, f"another program listens at {path}", "give it another path")
        group = self._settings.socket_group
        if group is not None:
            try:
                number = grp.getgrnam(group).gr_gid
            except KeyError:
                return bad(check, f"there is no group {group}", "socket_group: name one that is there")
            if os.geteuid() != 0 and number not in (os.getegid(), *os.getgroups()):
                return bad(check, f"this user is not in the group {group}", f"adduser USER {group}")
        if path.parent.is_dir() and not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=True):
            return bad(
                check, f"{path.parent} cannot be written to", "give another path, or its directory away"
            )
        return good(check, f"{place.title} is free")

    async def _reached(self, number: int, place: ListenSection) -> Finding:
        check = f"listen #{number}"
        wide = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked of, not listened at
        try:
            with trio.fail_after(REACHED_WITHIN):
                if place.path is not None:
                    stream = await trio.open_unix_socket(place.path or "")
                else:
                    stream = await trio.open_tcp_stream(wide.get(place.host, place.host), place.port or 0)
                await stream.aclose()
        except (OSError, trio.TooSlowError):
            advice = "restart the gateway: it runs with another configuration"
            return bad(check, f"{place.title} does not answer", advice)
        return good(check, f"{place.title} answers")

    async def _certificate(self, number: int, place: ListenSection) -> Finding:
        await trio.lowlevel.checkpoint()
        check = f"certificate of listen #{number}"
        try:
            left = days_left(place, self._now)
        except UsageError as error:
            return bad(check, str(error), "put a certificate and its key there, and reload the gateway")
        if Path(place.key or "").stat().st_mode & 0o007:
            return bad(check, f"{place.key} is open to other users", f"chmod o= {place.key}")
        if left < SOON:
            advice = "renew it, and reload the gateway"
            return warning(check, f"{counted(int(left), 'day')} left", advice)
        return good(check, f"{counted(int(left), 'day')} left")

    async def _extra(self, number: int, place: ListenSection) -> Finding:
        await trio.lowlevel.checkpoint()
        check = f"{'HTTP' if place.speaks_http else 'WebSockets'} of listen #{number}"
        try:
            import hushcast_gateway.http.websocket  # noqa: F401
        except ModuleNotFoundError:
            return bad(check, "h11 and wsproto are not there", how_to_get("gateway"))
        return good(check, "there")

    def _users(self) -> Finding:
        settings = self._settings
        sections = dict(settings.users) | (
            {"anonymous": settings.anonymous} if settings.anonymous is not None else {}
        )
        idle = [name for name, section in sections.items() if not section.publish and not section.subscribe]
        if idle:
            return warning(
                "users",
                f"{', '.join(idle)} may do nothing",
                "write topic filters into `publish` and `subscribe`",
            )
        return good("users", f"{counted(len(settings.users), 'user')}, each may do something")

    def _files(self) -> Finding:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if self._pid is None else _open_files(self._pid)
        needed = self._settings.limits.clients + FILES_BESIDE
        if soft < needed:
            advice = "raise `ulimit -n` before `hushcast run gateway`; the package's unit has LimitNOFILE"
            return bad("open files", f"{soft} allowed, {needed} may be needed", advice)
        return good("open files", f"{soft} allowed")

    def _links(self) -> Iterator[Finding]:
        for alias in self._settings.gateway.alias:
            check, path = f"link of {alias.name}", Path(alias.link_file)
            try:
                with path.open("rb"):
                    mode = path.stat().st_mode
            except PermissionError as error:
                advice = f"give it to the gateway's user: chown {_user()} {path}"
                yield bad(check, f"{path} cannot be read: {error.strerror}", advice)
                continue
            except OSError as error:
                yield bad(check, f"{path} cannot be read: {error.strerror}", "put the topic's link there")
                continue
            if mode & 0o077:
                yield bad(check, f"{path} is open to other users", f"chmod 600 {path}")
            else:
                yield good(check, "there, and private")

    def _keys(self) -> Iterator[Finding]:
        for alias in self._settings.gateway.alias:
            if alias.keys is None:
                continue
            check = f"keys of {alias.name}"
            try:
                files = read_files(alias.keys)
            except UsageError as error:
                yield bad(check, str(error), "put the issuer's files there, for the gateway's user alone")
                continue
            left = (files.ends - self._now) / (24 * 3600)
            advice = "get the issuer's next vocabulary and grants, put them there, and reload"
            if left < 0:
                yield bad(check, "the vocabulary, or what was granted, is over", advice)
            elif left < SOON:
                yield warning(check, f"{counted(int(left), 'day')} left", advice)
            else:
                yield good(check, f"{counted(int(left), 'day')} left")
            if granted := {one.purpose for one in files.grants}:
                yield from self._not_granted(alias.name, granted)

    def _not_granted(self, alias: str, granted: set[Purpose]) -> Iterator[Finding]:
        """Find the purposes that those who read an alias name, or may name, in vain."""
        above = granted.union(*map(ancestors, granted))
        for name, user in self._settings.speakers().items():
            if not any(intersects(one, f"{OWN}{alias}/#") for one in user.subscribe):
                continue
            vain = [user.purpose] if user.purpose and not _opens(user.purpose, granted) else []
            # Who may name a purpose may name those below it, which may be what was granted.
            vain += [one for one in user.purposes if not _opens(one, granted) and one not in above]
            for purpose in vain:
                yield warning(
                    f"grants of {alias}",
                    f"{name or 'anybody'} may read for {purpose}, and nobody granted that",
                    "get a grant from the issuer: until then nothing comes for it over the network",
                )

    def _purposes(self) -> Iterator[Finding]:
        section = self._settings.purposes
        if section is None:
            return
        try:
            vocabulary = vocabulary_of(section)
        except UsageError as error:
            yield bad(
                "vocabulary", str(error), "put the purposes there, one a line, readable for the gateway"
            )
            return
        yield good("vocabulary", counted(len(vocabulary), "purpose"))
        for where, problem in strangers(vocabulary, self._settings.named_purposes()):
            yield bad(
                where, problem, "add it to the vocabulary, or name another: no gateway starts like this"
            )
        speakers = self._settings.speakers().values()
        keyed = any(one.keys is not None for one in self._settings.gateway.alias)
        if not keyed and not section.reservation and not any(one.reserve for one in speakers):
            advice = "name topics in some user's `reserve`, or add [[purposes.reservation]]"
            yield warning("reservations", "nobody may reserve anything", advice)

    def _orphans(self) -> Iterator[Finding]:
        """Find reservations that nobody can take away any more but whoever runs the gateway."""
        try:
            found = orphans(self._settings) if self._settings.purposes is not None else []
        except HushcastError:
            return  # of the state, or of the vocabulary, is said elsewhere what is wrong
        for owner in sorted({one.owner for one in found}):
            count = sum(one.owner == owner for one in found)
            yield warning(
                f"reservations of {owner or 'anybody'}",
                f"there is no such user any more, and {counted(count, 'reservation')} of theirs",
                "`hushcast gateway purpose list` shows them, and `drop` takes them away",
            )

    def _kept_back(self) -> Iterator[Finding]:
        """Find messages whose topics do not travel any more, and which are handed out to nobody."""
        topics, travels = self._settings.gateway, self._settings.daemon.socket is not None
        ways = Ways((one.name for one in topics.alias), {one.from_: one.to for one in topics.map})

        def has_way(topic: str) -> bool:
            return not ways.takes(topic) or (travels and ways.of_topic(topic) is not None)

        count = 0
        with suppress(HushcastError):  # of the state it is said elsewhere what is wrong
            count = look_into(self._settings.state_path() / DATABASE, has_way=has_way).kept_back
        if count:
            yield warning(
                "kept back",
                f"{counted(count, 'message')} below hush/ whose topics do not travel any more",
                "put the alias back, or leave them: they are handed out to nobody",
            )

    async def _daemon(self) -> Finding:
        path = self._settings.daemon.socket
        if path is None:
            return good("daemon", "none: all topics stay at this gateway")
        reason = await why_unreached(path)
        if reason is None:
            return good("daemon", f"{path} answers")
        advice = "start the daemon, set its `socket_group`, and put the gateway's user into that group"
        return bad("daemon", f"{path}: {reason}", advice)


async def examine(settings: GatewaySettings, program: Program) -> list[Finding]:
    """Return a finding for each thing looked at, now."""
    return await GatewayDoctor(settings, system_environment().now()).examine()


def _opens(purpose: str, granted: Collection[str]) -> bool:
    """Tell whether what is for a purpose, and all below it, opens by what was granted."""
    return is_purpose(purpose) and any(one in granted for one in ancestors(Purpose(purpose)))


def _open_files(pid: int) -> int:
    """Return how many open files the kernel allows a process: the doctor's own limit may be another."""
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max open files"):
            return int(line.split()[3])
    raise LookupError(pid)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
