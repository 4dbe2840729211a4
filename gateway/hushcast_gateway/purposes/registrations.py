"""What clients say once of all that they publish: MQTT-DAP's registration by a message.

It stands for `aip` with each message that says nothing itself, as long as the client is connected; so it only
narrows, and takes no permission.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from hushcast_gateway.purposes.command_execution import CommandRefusal
from hushcast_gateway.purposes.commands import RegisterCommand
from hushcast_gateway.purposes.records import AuditRecord
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import AddedProperty, Permissions
from hushcast_protocol.purposes.clauses import reserve
from hushcast_protocol.purposes.message_purposes import ALLOWED, ALLOWING
from hushcast_protocol.purposes.vocabulary import Vocabulary

MAX_REGISTERED = 16  # filters of a client, by wildcards where it has many topics; each takes 8 KiB at worst


class Registrations:
    """What clients that are connected have registered, by filter."""

    def __init__(self) -> None:
        self._of_client: WeakKeyDictionary[Permissions, dict[str, tuple[str, str]]] = WeakKeyDictionary()

    def register(
        self, command: RegisterCommand, permissions: Permissions, client_id: str, vocabulary: Vocabulary
    ) -> AuditRecord:
        """Take a registration in place of the client's for the same filter; raises `CommandRefusal`."""
        user = permissions.user
        try:
            reserve(user, command.filter, command.aip, (), vocabulary)
        except UsageError as error:
            raise CommandRefusal(Reason.IMPLEMENTATION_SPECIFIC_ERROR, str(error)) from None
        theirs = self._of_client.setdefault(permissions, {})
        if command.filter not in theirs and len(theirs) >= MAX_REGISTERED:
            raise CommandRefusal(
                Reason.QUOTA_EXCEEDED, f"{MAX_REGISTERED} registrations of one client are the most"
            )
        theirs[command.filter] = ALLOWED, ",".join(command.aip)
        return AuditRecord(0.0, user, client_id, "message", command.filter, command.aip)

    def added(self, permissions: Permissions) -> AddedProperty | None:
        """Return what messages of a client get, `None` for nothing."""
        theirs = self._of_client.get(permissions)
        return None if theirs is None else AddedProperty(dict(theirs), ALLOWING)
