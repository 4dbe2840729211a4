"""Reservations listed and taken away at a gateway that runs, as whoever runs it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from gateway_process import wait_for
from paho.mqtt.enums import CallbackAPIVersion
from ports import free_port

pytestmark = pytest.mark.processes

WITHIN = 20.0  # seconds; measured below two, and other work may share the machine


def asked(config: Path, *words: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "hushcast_cli.start", "gateway", "purpose", *words]
    command += ["--config", str(config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_is_reserved_is_listed_and_taken_away(tmp_path: Path) -> None:
    port, config = free_port(), tmp_path / "gateway.toml"
    config.write_text(
        f'state = "{tmp_path}/state"\n[purposes]\n[[listen]]\nkind = "tcp"\nport = {port}\n'
        '[anonymous]\npublish = ["#"]\nsubscribe = ["#"]\nreserve = ["#"]\n'
    )
    process = subprocess.Popen([sys.executable, "-m", "hushcast_gateway", str(config)])
    try:
        wait_for(port)
        client = paho.Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", port)
        client.loop_start()
        for topic in ("!RESERVE/cars/HASH{}", "!RESERVE/home/HASH{marketing}"):
            client.publish(topic, b"", 1).wait_for_publish(WITHIN)
        client.disconnect()
        client.loop_stop()
        first, second = asked(config, "list")
        assert (first["owner"], first["filter"], first["aip"], first["gone"]) == ("", "cars/#", [], False)
        assert (second["filter"], second["aip"]) == ("home/#", ["marketing"])
        assert asked(config, "drop", "", "cars/#") == [{"owner": "", "filter": "cars/#", "dropped": True}]
        assert [one["filter"] for one in asked(config, "list")] == ["home/#"]
        assert asked(config, "audit", "--last", "1")[0]["what"] == "drop"
    finally:
        process.kill()
        process.wait()
