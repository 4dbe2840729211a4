"""Whether proxies ever answered, which is on disk, whether they do now, and what they say of the server."""

from __future__ import annotations

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.central.network import PROXY_ROLES, ProxyRole, missing_roles
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

_HEARD = RecordKind(
    "heard",
    StateOwner.CENTRAL_DAEMON,
    holds="of which roles proxies have ever answered",
    lifetime="for ever",
)


class Reachability:
    """What one daemon has heard of its network's proxies and server."""

    def __init__(self, store: Store, env: Environment) -> None:
        self._store = store
        self._contacts = {role: Contact(env.elapsed) for role in PROXY_ROLES}
        self._roles: set[ProxyRole] = set()
        self.is_server_there: bool | None = None
        """What the last proxy said that was asked; `None` before."""

    async def load(self) -> None:
        """Read what earlier lives heard."""
        roles = {role.encode(): role for role in PROXY_ROLES}
        await restore(self._store, _HEARD, lambda key, _: self._roles.add(roles[key]))

    @property
    def missing(self) -> list[ProxyRole]:
        """The roles of which no proxy has ever answered."""
        return missing_roles(self._roles)

    @property
    def cut_off(self) -> str | None:
        """Why nothing gets to or from the server, by what worked last; `None`: something does, or may."""
        for role, contact in self._contacts.items():
            if contact.is_lost:
                away = ", and the server is away" if self.is_server_there is False else ""
                tried = f"the last {contact.failed} attempts failed{away}"
                return f"nothing gets through proxies for {role}: {tried}"
        return None

    def is_silent(self, role: ProxyRole) -> bool:
        """Tell whether no proxy of a role has ever answered, or nothing gets through them any more."""
        return role not in self._roles or self._contacts[role].is_lost

    async def silence(self, role: ProxyRole) -> None:
        """Return once a role `is_silent`."""
        if not self.is_silent(role):
            await self._contacts[role].lost()

    def note_failure(self, role: ProxyRole) -> None:
        """Note that a proxy of this role was not reached, or did not answer as it should."""
        self._contacts[role].note(worked=False)

    def note(self, role: ProxyRole, is_server_there: bool) -> None:
        """Note that a proxy of this role answered, and what it said of the server."""
        self.is_server_there = is_server_there
        self._contacts[role].note(worked=is_server_there)
        if role not in self._roles:
            self._roles.add(role)
            self._store.write_soon(Change(_HEARD, role.encode(), b""))

    def check(self) -> None:
        """Raise `Refusal` where no proxy of some role has ever answered."""
        if self.missing:
            raise Refusal(
                f"no proxy for {self.missing[0]} has answered yet: `hushcast doctor` says what is not reached"
            )
