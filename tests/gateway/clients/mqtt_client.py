"""What every client of others can do here, whatever it is written in."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from dataclasses import dataclass

WITHIN = 30.0  # seconds; measured below two, and other work may share the machine
EXPIRY = 3_600  # seconds that a session lasts without its client


@dataclass(frozen=True)
class Server:
    """Where a gateway listens on loopback."""

    port: int
    ws_port: int = 0


@dataclass(frozen=True)
class Message:
    topic: str
    payload: str
    qos: int = 0
    retain: bool = False


class MqttClient(ABC):
    """One client; every call waits for the gateway's answer, `WITHIN` seconds at most."""

    def __init__(
        self, version: int, server: Server, client_id: str, lasting: bool = False, will: Message | None = None
    ) -> None:
        """`version` is 4 (3.1.1) or 5; a `lasting` client has a session that outlives its connection."""
        self.version = version
        self.server = server
        self.client_id = client_id
        self.lasting = lasting
        self.will = will
        self._came: queue.Queue[Message] = queue.Queue()

    @abstractmethod
    def connect(self) -> bool | None:
        """Connect; return whether there was a session, `None` where this client does not tell."""

    @abstractmethod
    def subscribe(self, wanted: str, qos: int) -> int:
        """Subscribe; return what was granted."""

    @abstractmethod
    def publish(self, topic: str, payload: str, qos: int = 0, retain: bool = False) -> None:
        """Publish; return when it was acknowledged, or sent at QoS 0."""

    @abstractmethod
    def close(self) -> None:
        """Say goodbye."""

    @abstractmethod
    def die(self) -> None:
        """Be gone without a word."""

    def message(self, within: float = WITHIN) -> Message:
        """Return the next message."""
        return self._came.get(timeout=within)
