"""mqtt.js, in one node process for all its clients, over TCP or WebSockets."""

from __future__ import annotations

import functools
import itertools
import json
import queue
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

from mqtt_client import EXPIRY, WITHIN, Message, MqttClient

HERE = Path(__file__).parent
MODULE = HERE.parents[2] / ".node" / "node_modules" / "mqtt"
"""Where `tools/require-mqtt-clients` puts it."""


def is_there() -> bool:
    return MODULE.exists() and shutil.which("node") is not None


class _Node:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", str(HERE / "mqttjs_client.js"), str(MODULE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._numbers = itertools.count()
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.messages: dict[str, queue.Queue[Message]] = {}
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def ask(self, **request: Any) -> Any:
        number = next(self._numbers)
        answers = self._answers[number] = queue.Queue()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, **request}) + "\n")
        answer = answers.get(timeout=WITHIN)
        assert "error" not in answer, answer["error"]
        return answer.get("answer")

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(WITHIN)
        self._reading.join(WITHIN)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in map(json.loads, self._process.stdout):
            if "message" in line:
                self.messages[line["client"]].put(Message(**line["message"]))
            else:
                self._answers[line["id"]].put(line)


@functools.cache
def _node() -> _Node:
    return _Node()


def end_node() -> None:
    """End the process, if there is one."""
    if _node.cache_info().currsize:
        _node().end()
        _node.cache_clear()


class MqttJsClient(MqttClient):
    scheme = "mqtt"

    def connect(self) -> bool:
        # Two runs of a client with the same id are two here.
        self._name = f"{self.client_id} {id(self)}"
        _node().messages[self._name] = self._came
        port = self.server.port if self.scheme == "mqtt" else self.server.ws_port
        options: dict[str, Any] = {
            "clientId": self.client_id,
            "clean": not self.lasting,
            "protocolVersion": self.version,
        }
        if self.version == 5 and self.lasting:
            options["properties"] = {"sessionExpiryInterval": EXPIRY}
        if self.will is not None:
            options["will"] = vars(self.will)
        return bool(self._ask("connect", url=f"{self.scheme}://127.0.0.1:{port}", options=options))

    def subscribe(self, wanted: str, qos: int) -> int:
        return int(self._ask("subscribe", wanted=wanted, qos=qos))

    def publish(self, topic: str, payload: str, qos: int = 0, retain: bool = False) -> None:
        self._ask("publish", topic=topic, payload=payload, qos=qos, retain=retain)

    def close(self) -> None:
        self._ask("close")

    def die(self) -> None:
        self._ask("die")

    def _ask(self, do: str, **request: Any) -> Any:
        return _node().ask(client=self._name, do=do, **request)


class MqttJsWebSocketClient(MqttJsClient):
    scheme = "ws"
