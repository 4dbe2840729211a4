"""Clients of paho as trials use them: with sessions that last, and connected again after a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MessageState, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

WITHIN = 30.0  # seconds in which a gateway must serve, and at the end everything must have come


class SteadyClient(paho.Client):
    """paho, which after a second attempt to connect publishes anew what it should release: it came twice."""

    def _messages_reconnect_reset_out(self) -> None:
        with self._out_message_mutex:
            for one in self._out_messages.values():
                if one.state == MessageState.MQTT_MS_RESEND_PUBREL:
                    one.state = MessageState.MQTT_MS_WAIT_FOR_PUBCOMP
        super()._messages_reconnect_reset_out()


@contextmanager
def connected(
    port: int, client_id: str, version: MQTTProtocolVersion, lasting: bool = True
) -> Iterator[paho.Client]:
    """Connect to a port of this machine for the block; a `lasting` session lasts an hour, or 21 days."""
    clean = not lasting if version == paho.MQTTv311 else None
    client = SteadyClient(CallbackAPIVersion.VERSION2, client_id, clean, protocol=version)
    client.reconnect_delay_set(1, 1)
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = 3_600 if lasting else 0
    client.connect("127.0.0.1", port, properties=properties if version == paho.MQTTv5 else None)
    client.loop_start()
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


def wait_until(condition: Callable[[], bool], what: str, within: float = WITHIN) -> None:
    """Return once a condition holds; raise `AssertionError` if that takes longer than `within` seconds."""
    until = time.monotonic() + within
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {within:.0f} s")
        time.sleep(0.005)
