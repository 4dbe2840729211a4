"""Hostile clients beside fifty honest ones: those lose nothing and stay connected, and nothing grows.

`HOSTILE_SECONDS=10 pytest -s` of this file: one attack after the other, too, with a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from attacks import ATTACKS
from hostile_world import HONEST, MEMORY, SECONDS, Crowd, GatewayUnderAttack, Honest, attacked, moment

pytestmark = pytest.mark.processes


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayUnderAttack]:
    gateway = GatewayUnderAttack(tmp_path)
    yield gateway
    gateway.process.kill()
    gateway.process.wait()


async def test_honest_clients_go_on_beside_hostile_ones(gateway: GatewayUnderAttack) -> None:
    clients = [Honest(f"honest/{number}") for number in range(HONEST)]
    crowd = Crowd([*clients])
    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(client.run, gateway.port)
            await client.has_begun.wait()
        files = gateway.files
        most = await attacked(gateway, crowd, [], SECONDS or 2)
        for name in ATTACKS if SECONDS else ():
            most = max(most, await attacked(gateway, crowd, [name], SECONDS))
        most = max(most, await attacked(gateway, crowd, list(ATTACKS), SECONDS or 3))
        await crowd.settle()
        await moment(lambda: gateway.files <= files)
        assert gateway.files <= files
        nursery.cancel_scope.cancel()
    assert most < MEMORY
    assert gateway.process.poll() is None
    told = gateway.log.read_text()
    assert "Traceback" not in told
    assert "failed in us" not in told
