"""paho-mqtt: callbacks, from a thread of its own."""

from __future__ import annotations

import queue
import socket
from typing import Any

import paho.mqtt.client as paho
from mqtt_client import EXPIRY, WITHIN, Message, MqttClient
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

_BROKEN = object()


class PahoClient(MqttClient):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        # In version 5 the session is asked for with CONNECT.
        clean = {"clean_session": not self.lasting} if self.version == 4 else {}
        self._paho = paho.Client(
            CallbackAPIVersion.VERSION2,
            self.client_id,
            protocol=self.version,
            reconnect_on_failure=False,
            **clean,
        )
        self._answers: queue.Queue[Any] = queue.Queue()
        self._paho.on_connect = lambda client, data, flags, code, properties: self._answers.put(
            (code.value, flags.session_present)
        )
        self._paho.on_subscribe = lambda client, data, number, codes, properties: self._answers.put(
            codes[0].value
        )
        self._paho.on_publish = lambda client, data, number, code, properties: self._answers.put(code.value)
        self._paho.on_message = lambda client, data, one: self._came.put(
            Message(one.topic, one.payload.decode(), one.qos, one.retain)
        )
        self._paho.on_disconnect = lambda client, data, flags, code, properties: self._answers.put(_BROKEN)
        if self.will is not None:
            self._paho.will_set(self.will.topic, self.will.payload, self.will.qos, self.will.retain)

    def connect(self) -> bool:
        lasting: dict[str, Any] = {}
        if self.version == 5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = EXPIRY if self.lasting else 0
            lasting = {"clean_start": not self.lasting, "properties": properties}
        self._paho.connect("127.0.0.1", self.server.port, **lasting)
        self._paho.loop_start()
        code, present = self._answer()
        assert code == 0
        return bool(present)

    def subscribe(self, wanted: str, qos: int) -> int:
        self._paho.subscribe(wanted, qos)
        return int(self._answer())

    def publish(self, topic: str, payload: str, qos: int = 0, retain: bool = False) -> None:
        self._paho.publish(topic, payload, qos, retain)
        code = self._answer()
        assert code < 0x80, code

    def _answer(self) -> Any:
        answer = self._answers.get(timeout=WITHIN)
        if answer is _BROKEN:
            raise ConnectionError
        return answer

    def close(self) -> None:
        self._paho.disconnect()
        self._end()

    def die(self) -> None:
        if (ours := self._paho.socket()) is not None:
            ours.shutdown(socket.SHUT_RDWR)
        self._end()

    def _end(self) -> None:
        self._paho.loop_stop()
        self._paho._reset_sockets()  # else it is left to the collector when a connection broke
