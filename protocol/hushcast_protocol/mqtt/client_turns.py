"""Turns: clients for whom there is more to do than one step may take, users one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hushcast_protocol.mqtt.mqtt_session import MqttSession


class ClientTurns:
    """Those whose turn is to come. A user with many clients has no more turns than one with a single one."""

    def __init__(self) -> None:
        self._of: dict[str, dict[MqttSession, None]] = {}

    def add(self, session: MqttSession) -> None:
        """Give a client another turn, behind those of other users and of its own."""
        self._of.setdefault(session.user, {})[session] = None

    def take(self) -> MqttSession | None:
        """Return whose turn it is; `None` if there is nothing left to do."""
        user = next(iter(self._of), None)
        if user is None:
            return None
        sessions = self._of.pop(user)
        session = next(iter(sessions))
        del sessions[session]
        if sessions:
            self._of[user] = sessions
        return session

    def __bool__(self) -> bool:
        """Tell whether anything is left to do."""
        return bool(self._of)
