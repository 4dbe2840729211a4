"""mosquitto_pub and mosquitto_sub: a process for each message, and one for each subscription."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import threading

from mqtt_client import EXPIRY, WITHIN, Message, MqttClient

_GRANTED = re.compile(r"Subscribed \(mid: \d+\): (\d+)")


class MosquittoClient(MqttClient):
    """Connects when it subscribes, once."""

    _process: subprocess.Popen[str] | None = None

    def connect(self) -> None:
        self._granted: queue.Queue[int] = queue.Queue()

    def subscribe(self, wanted: str, qos: int) -> int:
        # -d tells of the SUBACK, among the messages: line by line, where a pipe would wait for a block.
        command = ["stdbuf", "-oL", "mosquitto_sub", *self._common(), "-i", self.client_id]
        command += ["-d", "-F", "%j", "-t", wanted, "-q", str(qos)]
        if self.lasting:
            command += ["-c"] if self.version == 4 else ["-c", "-x", str(EXPIRY)]
        if (will := self.will) is not None:
            command += ["--will-topic", will.topic, "--will-payload", will.payload]
            command += ["--will-qos", str(will.qos), *(["--will-retain"] if will.retain else [])]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._reading = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reading.start()
        return self._granted.get(timeout=WITHIN)

    def publish(self, topic: str, payload: str, qos: int = 0, retain: bool = False) -> None:
        command = ["mosquitto_pub", *self._common(), "-t", topic, "-q", str(qos)]
        command += ["-m", payload] if payload else ["-n"]
        subprocess.run([*command, *(["-r"] if retain else [])], check=True, timeout=WITHIN)

    def close(self) -> None:
        self._end(with_word=True)

    def die(self) -> None:
        self._end(with_word=False)

    def _common(self) -> list[str]:
        version = "311" if self.version == 4 else "5"
        return ["-h", "127.0.0.1", "-p", str(self.server.port), "-V", version]

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                one = json.loads(line)
                self._came.put(Message(one["topic"], one["payload"] or "", one["qos"], bool(one["retain"])))
            elif (granted := _GRANTED.match(line)) is not None:
                self._granted.put(int(granted[1]))

    def _end(self, with_word: bool) -> None:
        if (process := self._process) is None:
            return
        if with_word:
            process.terminate()
        else:
            process.kill()
        process.wait(WITHIN)
        self._reading.join(WITHIN)
        assert process.stdout is not None
        process.stdout.close()
