"""An MQTT 5 client for a machine that has Python and paho alone; what it hears it tells in lines of JSON.

`mqtt_user.py PLACE USER PASSWORD ID UNTIL [subscribe FILTER | publish TOPIC PAYLOAD]`: it ends at the event
UNTIL, or with exit code 1 after twenty seconds. PLACE is a Unix socket's path, or a port on loopback.
"""

from __future__ import annotations

import json
import queue
import sys
from typing import Any

from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

KEPT = 600  # seconds that a session outlives its connection
WITHIN = 20.0  # seconds


def main() -> None:
    place, user, password, identity, until, *action = sys.argv[1:]
    heard: queue.Queue[list[Any]] = queue.Queue()
    client = mqtt.Client(
        CallbackAPIVersion.VERSION2,
        client_id=identity,
        protocol=mqtt.MQTTv5,
        transport="unix" if place.startswith("/") else "tcp",
    )
    if user:
        client.username_pw_set(user, password)

    def connected(_: object, __: object, flags: Any, reason: Any, ___: object) -> None:
        heard.put(["connected", reason.value, flags.session_present])
        if action[:1] == ["subscribe"]:
            client.subscribe(action[1], 1)
        elif action[:1] == ["publish"]:
            client.publish(action[1], action[2], 1)

    client.on_connect = connected
    client.on_subscribe = lambda _, __, ___, reasons, ____: heard.put(["subscribed", reasons[0].value])
    client.on_publish = lambda _, __, ___, reason, ____: heard.put(["published", reason.value])
    client.on_message = lambda _, __, message: heard.put(["message", message.payload.decode()])
    client.on_disconnect = lambda _, __, ___, reason, ____: heard.put(["disconnected", reason.value])
    kept = Properties(PacketTypes.CONNECT)
    kept.SessionExpiryInterval = KEPT
    host, port = ("127.0.0.1", int(place)) if place.isdigit() else (place, 1)
    client.connect(host, port, clean_start=False, properties=kept)
    client.loop_start()
    while True:
        event = heard.get(timeout=WITHIN)
        print(json.dumps(event), flush=True)
        if event[0] == until:
            return


main()
