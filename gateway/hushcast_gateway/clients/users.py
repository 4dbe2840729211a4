"""Users: who a client is, by password, certificate or user of the machine, and what it may do."""

from __future__ import annotations

from weakref import WeakSet

from hushcast_gateway.passwords import Passwords, TooBusy
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.settings import GatewaySettings
from hushcast_gateway.tokens import is_token, token_hash
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import Connect

ANYBODY = ""
"""The name of clients that give none; no user has it."""


class GatewayUsers:
    """The users of a configuration. Another configuration may replace them while clients are connected."""

    def __init__(self, settings: GatewaySettings, passwords: Passwords) -> None:
        self._passwords = passwords
        self._given: WeakSet[AccessPermissions] = WeakSet()
        self.replace(settings)

    def replace(self, settings: GatewaySettings) -> None:
        """Let the users of a configuration in from now on, and nobody else.

        Who is connected may do what it says now; a user whom it does not know, nothing any more.
        """
        self._users = dict(settings.users)
        self._anonymous = settings.anonymous
        self._by_uid = {uid: name for name, user in self._users.items() for uid in user.uid}
        self._by_certificate = {
            user.certificate: name for name, user in self._users.items() if user.certificate is not None
        }
        self._by_token = {token: name for name, user in self._users.items() for token in user.tokens}
        # An unknown name costs what a known one does, so that time does not tell which names there are.
        self._any_hash = next((user.password for user in self._users.values() if user.password), None)
        for permissions in self._given:
            permissions.replace(self._access(permissions.user))

    async def authenticate(self, connect: Connect, peer: ClientPeer) -> AccessPermissions | Reason:
        """Return what a client may do, or the reason why it is not let in.

        An empty name comes with a token, another with its password, or from the machine's user or the
        certificate that it belongs to.
        Without a name a client is who these say it is, else anonymous, where it is on this machine. Where
        there are no users a name means nothing: some devices send one whether they were told to or not.
        """
        proved = self._proved(peer)
        name = connect.username
        if name is None or not self._users:
            if proved is not None:
                return self.permissions(proved, connect.client_id)
            if self._anonymous is not None and peer.local:
                return self.permissions(ANYBODY, connect.client_id)
            return Reason.NOT_AUTHORIZED
        if not name and is_token(connect.password):
            known_by = self._by_token.get(token_hash(connect.password))
            if known_by is None:
                return Reason.BAD_USER_NAME_OR_PASSWORD
            return self.permissions(known_by, connect.client_id)
        if connect.password is None and name == proved:
            return self.permissions(name, connect.client_id)
        user = self._users.get(name)
        known = user.password if user is not None else None
        try:
            is_right = await self._is_right(known, connect.password or b"")
        except TooBusy:
            return Reason.SERVER_BUSY
        # Asked again: the configuration may have been replaced meanwhile.
        if not is_right or self._users.get(name) != user:
            return Reason.BAD_USER_NAME_OR_PASSWORD
        return self.permissions(name, connect.client_id)

    def permissions(self, name: str, client_id: str) -> AccessPermissions:
        """Return what a user's client may do from now on, by this configuration and those that replace it.

        A user whom a configuration does not know may do nothing.
        """
        permissions = AccessPermissions(self._access(name), name, client_id)
        self._given.add(permissions)
        return permissions

    def _proved(self, peer: ClientPeer) -> str | None:
        if peer.uid is not None and (name := self._by_uid.get(peer.uid)) is not None:
            return name
        if peer.guest is not None and peer.guest in self._users:
            return peer.guest
        return self._by_certificate.get(peer.certificate) if peer.certificate is not None else None

    async def _is_right(self, known: str | None, given: bytes) -> bool:
        if known is not None:
            return await self._passwords.are_equal(known, given)
        if self._any_hash is not None:
            await self._passwords.take_as_long(self._any_hash, given)
        return False

    def _access(self, name: str) -> Access:
        section = self._users.get(name) if name != ANYBODY else self._anonymous
        return section.access() if section is not None else Access()
