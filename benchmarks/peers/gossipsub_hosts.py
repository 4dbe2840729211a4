"""py-libp2p gossipsub hosts on loopback, in the peers' environment: a relay, or the two ends around it.

`relay` prints its address and serves. `ends ADDRESS` connects a publisher and a subscriber to that relay and
not to each other; for each number read it passes that many messages of 1 KiB and prints the seconds taken.
"""

from __future__ import annotations

import logging
import os
import sys

import trio
from libp2p import new_host
from libp2p.abc import IHost
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.gossipsub import GossipSub
from libp2p.pubsub.pubsub import Pubsub
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr

PAYLOAD = 1024  # bytes
PROTOCOL = "/meshsub/1.1.0"
TOPIC = "bench"
WINDOW = 32  # messages between publisher and subscriber; larger ones are not faster and lose messages
_SETTLE = 3.0  # seconds in which a mesh forms; the heartbeat is one


def _pubsub(host: IHost) -> tuple[GossipSub, Pubsub]:
    # Its limits on messages a second are lifted: they would be what is measured.
    router = GossipSub(
        protocols=[PROTOCOL],
        degree=6,
        degree_low=1,
        degree_high=12,
        heartbeat_interval=1,
        spam_protection_enabled=False,
        eclipse_protection_enabled=False,
    )
    return router, Pubsub(host, router, cache_size=100_000)


async def relay() -> None:
    """Serve until killed."""
    host = new_host(key_pair=create_new_key_pair())
    router, pubsub = _pubsub(host)
    async with (
        host.run(listen_addrs=[Multiaddr("/ip4/127.0.0.1/tcp/0")]),
        background_trio_service(pubsub),
        background_trio_service(router),
    ):
        await pubsub.wait_until_ready()
        subscription = await pubsub.subscribe(TOPIC)
        print(host.get_addrs()[0], flush=True)
        while True:
            await subscription.get()


async def ends(address: str) -> None:
    """Pass messages through the relay as asked on standard input."""
    publisher, subscriber = (new_host(key_pair=create_new_key_pair()) for _ in range(2))
    (first, out), (second, into) = _pubsub(publisher), _pubsub(subscriber)
    listen = [Multiaddr("/ip4/127.0.0.1/tcp/0")]
    async with (
        publisher.run(listen_addrs=listen),
        subscriber.run(listen_addrs=listen),
        background_trio_service(out),
        background_trio_service(first),
        background_trio_service(into),
        background_trio_service(second),
    ):
        await out.wait_until_ready()
        await into.wait_until_ready()
        for host in (publisher, subscriber):
            await host.connect(info_from_p2p_addr(Multiaddr(address)))
        arriving = await into.subscribe(TOPIC)
        await trio.sleep(_SETTLE)
        print("ready", flush=True)
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            print(await _pass(int(line), out, arriving), flush=True)


async def _pass(count: int, out: Pubsub, arriving: object) -> float:
    room = trio.Semaphore(WINDOW)
    began = trio.current_time()

    async def publish() -> None:
        for _ in range(count):
            await room.acquire()
            await out.publish(TOPIC, os.urandom(PAYLOAD))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(publish)
        for _ in range(count):
            await arriving.get()  # type: ignore[attr-defined]
            room.release()
    return trio.current_time() - began


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "relay":
        trio.run(relay)
    else:
        trio.run(ends, sys.argv[2])
