"""Whether proxies have ever answered, which is on disk, and what was last heard of the server."""

from __future__ import annotations

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.central.network import PROXY_ROLES, ProxyRole, missing_roles
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Change, Store

_HEARD = RecordKind(
    "heard",
    StateOwner.CENTRAL_DAEMON,
    holds="of which roles proxies have ever answered",
    lifetime="for ever",
)


class Reachability:
    """What one daemon has heard of its network's proxies and server."""

    def __init__(self, store: Store) -> None:
        self._store = store
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

    def note(self, role: ProxyRole, is_server_there: bool) -> None:
        """Note that a proxy of this role answered, and what it said of the server."""
        self.is_server_there = is_server_there
        if role not in self._roles:
            self._roles.add(role)
            self._store.write_soon(Change(_HEARD, role.encode(), b""))

    def check(self) -> None:
        """Raise `Refusal` where no proxy of some role has ever answered."""
        if self.missing:
            raise Refusal(
                f"no proxy for {self.missing[0]} has answered yet: `hushcast doctor` says what is not reached"
            )
