"""`hushcast gateway clients`, `kick`, `retained` and `refused`, as the operator of a gateway types them."""

from __future__ import annotations

import os
import pty
import queue
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from running import COMMAND, WITHIN, Running, environment, hushcast, until

CONFIG = """program = "gateway"
state = "{tmp}/state"
[limits]
filters = 2
delayed = 5
[[listen]]
kind = "unix"
path = "{tmp}/mqtt.sock"
[anonymous]
publish = ["#"]
subscribe = ["#"]
"""


class PahoClient:
    """A client of paho, by its identifier."""

    def __init__(self, folder: Path, client_id: str) -> None:
        self.paho = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=paho.MQTTv5,
            transport="unix",
            reconnect_on_failure=False,
        )
        self.granted: queue.Queue[int] = queue.Queue()
        self.published: queue.Queue[int] = queue.Queue()
        self.ended: queue.Queue[int] = queue.Queue()
        connected: queue.Queue[int] = queue.Queue()
        self.paho.on_connect = lambda client, data, flags, code, properties: connected.put(code.value)
        self.paho.on_subscribe = lambda client, data, number, codes, properties: self.granted.put(
            codes[0].value
        )
        self.paho.on_publish = lambda client, data, number, code, properties: self.published.put(code.value)
        self.paho.on_disconnect = lambda client, data, flags, code, properties: self.ended.put(code.value)
        self.paho.connect(str(folder / "mqtt.sock"))
        self.paho.loop_start()
        assert connected.get(timeout=WITHIN) == 0

    def subscribe(self, wanted: str) -> int:
        self.paho.subscribe(wanted, 1)
        return self.granted.get(timeout=WITHIN)

    def retain(self, topic: str) -> None:
        self.paho.publish(topic, b"on", 1, retain=True)
        assert self.published.get(timeout=WITHIN) == 0

    def close(self) -> None:
        self.paho.disconnect()
        self.paho.loop_stop()
        self.paho._reset_sockets()


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[Path]:
    """Run a gateway for the block, and give its configuration."""
    file = folder / "gateway.toml"
    file.write_text(CONFIG.format(tmp=folder))
    running = await Running.start("run", "gateway", "--config", file)
    try:
        await until((folder / "mqtt.sock").exists)
        yield file
    finally:
        running.process.terminate()
        ended = await running.outcome()
    assert ended.code == 0
    for name in ("hass", "secret"):
        assert name not in ended.stderr, "names are no logs' affair"


def typed_in_a_terminal(answer: bytes, *arguments: str) -> tuple[int, bytes]:
    """Run a command in a terminal, answer its question, and return its exit code and what was seen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND[0], [*COMMAND, *arguments], environment())
    seen = b""
    while b"[y/N]" not in seen:
        seen += os.read(terminal, 1024)
    os.write(terminal, answer)
    while True:
        try:
            seen += os.read(terminal, 1024)
        except OSError:  # the end of a terminal
            break
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


@pytest.mark.slow
async def test_an_operator_looks_kicks_and_purges(tmp_path: Path) -> None:
    async with gateway(tmp_path) as file:
        config = "--config", str(file)
        hass = PahoClient(tmp_path, "hass")
        assert [hass.subscribe(f"secret/{n}") for n in range(3)] == [1, 1, 0x97], "as it was set"
        for n in range(3):
            hass.retain(f"secret/{n}")
        hass.retain("other")

        (one,) = (await hushcast("gateway", "clients", *config, "--json")).objects
        assert (one["user"], one["client"], one["filters"], one["until"]) == ("", "hass", 2, None)
        assert one["packets_in"] >= 8
        text = (await hushcast("gateway", "clients", *config)).stdout.decode()
        assert text.startswith("hass (anybody): connected since 20")
        assert "2 filters" in text

        (one,) = (await hushcast("gateway", "refused", *config, "--json")).objects
        assert (one["cause"], one["client"], one["subject"]) == ("full", "hass", "secret/2")
        text = (await hushcast("gateway", "refused", *config)).stdout.decode()
        assert "hass (anybody): 1 subscription refused because their client has as many as it may" in text
        found = await hushcast("doctor", "gateway", *config)
        assert "`limits.filters`" in found.stdout.decode()

        listed = await hushcast("gateway", "retained", "list", "secret/#", *config)
        assert listed.stdout.decode().splitlines()[0] == "secret/0: 2 bytes, QoS 1, of anybody"
        assert len(listed.stdout.splitlines()) == 3
        asked = await hushcast("gateway", "retained", "purge", "secret/#", *config)
        assert (asked.code, "--yes" in asked.error) == (2, True)
        purge = "gateway", "retained", "purge", "secret/#", *config
        code, seen = typed_in_a_terminal(b"n\n", *purge)
        assert (code, b"nothing was deleted" in seen) == (1, True)
        code, seen = typed_in_a_terminal(b"y\n", *purge)
        assert (code, b"3 retained messages deleted" in seen) == (0, True)
        done = await hushcast("gateway", "retained", "purge", "other", "--yes", "--json", *config)
        assert done.objects == [{"deleted": 1, "histories": 0, "travelling": 0, "elsewhere": 0, "refused": 0}]
        none = await hushcast("gateway", "retained", "list", *config)
        assert (none.code, none.stdout) == (0, b"")
        assert "nothing is retained" in none.stderr
        wrong = await hushcast("gateway", "retained", "list", "a/#/b", *config)
        assert (wrong.code, "no topic filter" in wrong.error) == (2, True)

        hass.paho.publish("$delayed/600/secret/later", b"on", 1)
        assert hass.published.get(timeout=WITHIN) == 0
        (one,) = (await hushcast("gateway", "delayed", *config, "--json")).objects
        assert (one["topic"], one["client"], one["bytes"]) == ("secret/later", "hass", 2)
        text = (await hushcast("gateway", "delayed", *config)).stdout.decode()
        assert "secret/later: 2 bytes, QoS 1, by hass (anybody)" in text

        nobody = await hushcast("gateway", "kick", "nobody", *config)
        assert (nobody.code, "`hushcast gateway clients`" in nobody.error) == (2, True)
        kicked = await hushcast("gateway", "kick", "hass", *config)
        assert (kicked.code, kicked.stdout) == (0, b"hass is disconnected\n")
        assert hass.ended.get(timeout=WITHIN) == 0x98
        hass.close()
        assert "nobody is connected" in (await hushcast("gateway", "clients", *config)).stderr


async def test_a_gateway_that_does_not_run_is_told(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(CONFIG.format(tmp=tmp_path))
    for words in (
        ("clients",),
        ("kick", "x"),
        ("retained", "list"),
        ("retained", "purge", "#"),
        ("refused",),
        ("delayed",),
    ):
        outcome = await hushcast("gateway", *words, "--config", file)
        assert outcome.code == 3
        assert "no gateway answers at" in outcome.error
        assert "hushcast doctor gateway" in outcome.error


@pytest.mark.parametrize("said", [b"", b"\n", b'{"is": "unheard of"}\n'])
async def test_what_answers_and_is_no_gateway_of_this_version(tmp_path: Path, said: bytes) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(CONFIG.format(tmp=tmp_path))
    (tmp_path / "state").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "state" / "operators.sock"))
        other.listen()
        other.settimeout(WITHIN)

        def answer() -> None:
            stream, _ = other.accept()
            with stream:
                stream.recv(1_024)
                stream.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        outcome = await hushcast("gateway", "clients", "--config", file)
        thread.join(WITHIN)
    assert outcome.code == 3
    assert "no gateway answers" in outcome.error
