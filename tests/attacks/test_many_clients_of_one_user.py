"""One MQTT user has many clients that send as fast as they can, and wants the clients of all others to wait:
each of its own is one more that comes before them.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
import trio
from memory_gateway import Client, running

from hushcast_gateway.clients.user_turns import TURN_PACKETS, ServingTurns
from hushcast_gateway.peer import ClientPeer
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import V5, Connect, PingReq, PingResp, Publish

CLIENTS = 12
TURNS = 6  # of the other user, until a client has been read from, answered, and heard
AT_ONCE = 2_000  # packets of one write


async def whose(packet: Connect, peer: ClientPeer) -> FullPermissions:
    """Name the user by the client."""
    await trio.lowlevel.checkpoint()
    return FullPermissions(packet.client_id.rstrip("0123456789"))


async def flood(client: Client) -> None:
    data = encode(Publish("m/x", b""), V5) * AT_ONCE
    while True:
        await client.stream.send_all(data)


async def test_others_wait_for_a_user_and_not_for_each_of_its_clients() -> None:
    async with running(authenticate=whose) as gateway, trio.open_nursery() as nursery:
        alice = await gateway.connect("alice")
        for client in [await gateway.connect(f"mallory{number}") for number in range(CLIENTS)]:
            nursery.start_soon(flood, client)
        counts = gateway.broker.counts
        while not counts["messages_received"]:
            await trio.lowlevel.checkpoint()
        for _ in range(2):
            before = counts["messages_received"]
            await alice.send(PingReq())
            assert isinstance(await alice.next(), PingResp)
            assert counts["messages_received"] - before <= TURNS * TURN_PACKETS
        nursery.cancel_scope.cancel()


async def test_a_users_own_clients_have_their_turns_one_after_the_other() -> None:
    turns, order = ServingTurns(), list[int]()

    async def client(number: int) -> None:
        turn = turns.of("mallory")
        for _ in range(3):
            async with turn:
                order.append(number)
                turn.packets_left = 0

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(client, number)
    assert sorted(order[:3]) == sorted(order[3:6]) == sorted(order[6:]) == [0, 1, 2]


async def test_a_client_that_is_gone_takes_nobodys_turn() -> None:
    turns = ServingTurns()
    held = turns.of("mallory")
    async with held, trio.open_nursery() as nursery:
        nursery.start_soon(held.__aenter__)
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    with trio.move_on_after(1):
        async with turns.of("mallory"):
            return
    pytest.fail("nobody gives it back")


@pytest.mark.parametrize("seed", range(5))
async def test_nobody_who_waits_is_forgotten_whoever_goes_away(seed: int) -> None:
    chance, turns, served = Random(seed), ServingTurns(), Counter[int]()

    async def client(number: int, goes_away: bool) -> None:
        turn = turns.of("mallory")
        with trio.CancelScope() as scope:
            for _ in range(20):
                async with turn:
                    served[number] += 1
                    turn.packets_left -= chance.randrange(TURN_PACKETS)
                if goes_away and chance.random() < 0.2:
                    scope.cancel()
                await trio.lowlevel.checkpoint()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for number in range(60):
                nursery.start_soon(client, number, number % 3 == 0)
    assert all(served[number] == 20 for number in range(60) if number % 3)
