"""The clients that others wrote, as a table: which, in which version of MQTT."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from loop_clients import AiomqttClient, GmqttClient, end_loop
from mosquitto_client import MosquittoClient
from mqtt_client import MqttClient, Server
from mqttjs_client import MqttJsClient, MqttJsWebSocketClient, end_node, is_there
from paho_client import PahoClient


def has_mosquitto_clients() -> bool:
    return shutil.which("mosquitto_sub") is not None


def always() -> bool:
    return True


@dataclass(frozen=True)
class Kind:
    """A kind of client."""

    name: str
    version: int
    make: type[MqttClient]
    is_there: Callable[[], bool] = always

    def client(self, server: Server, client_id: str, **options: Any) -> MqttClient:
        return self.make(self.version, server, client_id, **options)

    def __str__(self) -> str:
        return f"{self.name}-{'3.1.1' if self.version == 4 else '5'}"


KINDS = [
    *(Kind("mosquitto", version, MosquittoClient, has_mosquitto_clients) for version in (4, 5)),
    *(Kind("paho", version, PahoClient) for version in (4, 5)),
    Kind("aiomqtt", 5, AiomqttClient),
    Kind("gmqtt", 5, GmqttClient),
    *(Kind("mqtt.js", version, MqttJsClient, is_there) for version in (4, 5)),
    *(Kind("mqtt.js-ws", version, MqttJsWebSocketClient, is_there) for version in (4, 5)),
]


def require(kind: Kind) -> None:
    """Leave out a test of what is not installed."""
    if not kind.is_there():
        pytest.skip("NOT TESTED: clients of MQTT are missing: `tools/require-mqtt-clients` says which")


def end_helpers() -> None:
    """End what the clients run in."""
    end_loop()
    end_node()
