"""Hostile clients over HTTP beside fifty honest ones, of MQTT and of HTTP: those lose nothing.

`HOSTILE_SECONDS=10 pytest -s` of this file: one attack after the other, too, with a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from hostile_world import EVERY, HONEST, MEMORY, SECONDS, Crowd, GatewayUnderAttack, Honest, attacked, moment
from http_attacks import HTTP_ATTACKS
from http_world import HttpCaller

pytestmark = pytest.mark.processes


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayUnderAttack]:
    gateway = GatewayUnderAttack(tmp_path)
    yield gateway
    gateway.process.kill()
    gateway.process.wait()


class HonestReader(Honest):
    """A client over HTTP that streams what it publishes once a second, each time over a new connection."""

    async def run(self, port: int) -> None:
        """Publish and read until cancelled; an end of the stream is an error."""
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream, trio.open_nursery() as nursery:
            caller = HttpCaller(stream)
            response = await caller.stream_of(f"/{self.name}/json", Authorization="Basic YWxpY2U6cmlnaHQ=")
            assert response.status_code == 200
            while line := await caller.line():
                event = json.loads(line)
                if event["event"] == "open":
                    self.has_begun.set()
                    nursery.start_soon(self._publish, port)
                elif event["event"] == "message":
                    self.delays.append(trio.current_time() - self.sent.pop(event["message"].encode()))
            raise AssertionError("an honest client was disconnected")

    async def _publish(self, port: int) -> None:
        for number in range(1, 60_000):
            if self.is_publishing:
                payload = b"%d" % number
                self.unacknowledged.add(number)
                self.sent[payload] = trio.current_time()
                async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                    answer = await HttpCaller(stream).ask("POST", f"/{self.name}", payload, "alice:right")
                assert answer.status == 200, answer.body
                self.unacknowledged.remove(number)
            await trio.sleep(EVERY)


async def test_honest_clients_go_on_beside_hostile_ones_over_http(gateway: GatewayUnderAttack) -> None:
    devices = [Honest(f"honest/{number}") for number in range(HONEST // 2)]
    readers = [HonestReader(f"reader/{number}") for number in range(HONEST - HONEST // 2)]
    crowd = Crowd([*devices, *readers])
    async with trio.open_nursery() as nursery:
        for device in devices:
            nursery.start_soon(device.run, gateway.port)
            await device.has_begun.wait()
        for reader in readers:
            nursery.start_soon(reader.run, gateway.http)
            await reader.has_begun.wait()
        files = gateway.files
        most = await attacked(gateway, crowd, [], SECONDS or 2)
        for name in HTTP_ATTACKS if SECONDS else ():
            most = max(most, await attacked(gateway, crowd, [name], SECONDS, "http_attacks.py"))
        most = max(most, await attacked(gateway, crowd, list(HTTP_ATTACKS), SECONDS or 3, "http_attacks.py"))
        await crowd.settle()
        await moment(lambda: gateway.files <= files + 4)
        assert gateway.files <= files + 4  # requests of honest clients are under way
        nursery.cancel_scope.cancel()
    assert most < MEMORY
    assert gateway.process.poll() is None
    told = gateway.log.read_text()
    assert "Traceback" not in told
    assert "failed in us" not in told
