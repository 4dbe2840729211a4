"""Away: subscribers stop for thirty epochs over a midnight, while another publishes, and come back.

Each has a topic of its own, and the host of the last one is killed meanwhile and stays dead. What has a
receipt and led to a host that is there must come, once and soon. Whose host is dead is told that messages are
lost, once, when the day is over for which it kept them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

import hushcast
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_testnet.chaos.breaker import ProcessBreaker
from hushcast_testnet.chaos.fault_plan import Fault
from hushcast_testnet.inventory import Member, Testnet, load
from soak.relay_disks import owners, relay_records

LEAVES_AT = 18.2  # epochs into a day, when every subscription has installed the next
AWAY = 29.6  # epochs, over one midnight: until shortly before the second
PUBLICATIONS = 200  # on each topic
SUBSCRIBED_WITHIN = 120.0  # seconds
COMES_WITHIN = 60.0  # seconds from the start of the daemon
TOLD_WITHIN = 32.0  # epochs from the start: the host kept what waits until 24.2 epochs after it

Progress = Callable[[str], None]


def watch_away(directory: Path, publications: int, progress: Progress) -> dict[str, Any]:
    """Let the clients of a running testnet but one be away; return what came, and how soon.

    `ok` tells whether all came to each whose host was not killed, once and within a minute, and whether the
    one whose host was killed lacks nothing, or was told once that messages are lost.
    """
    return trio.run(_watch, load(directory), publications, progress)


async def _watch(testnet: Testnet, publications: int, progress: Progress) -> dict[str, Any]:
    breaker = ProcessBreaker(testnet)
    *away, publisher = [member for member in testnet.nodes if member.role == "client"]
    for member in away:
        with trio.fail_after(SUBSCRIBED_WITHIN):
            async with hushcast.connect(member.socket) as daemon, daemon.subscribe(member.name):
                pass
    day = EPOCHS_A_DAY * testnet.epoch
    wait = (LEAVES_AT * testnet.epoch - time.time()) % day
    progress(f"leaving in {wait:.0f} s")
    await trio.sleep(wait)
    hosts = _hosts(testnet)
    killed = hosts[away[-1].name]
    for member in away:
        await breaker.begin(_fault("stop", member.name))
    published: dict[str, set[str]] = {member.name: set() for member in away}
    pause, left = AWAY * testnet.epoch / (publications + 1), trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(publications):
            if number == publications // 2:
                progress("killing a host")
                await breaker.begin(_fault("kill", killed))
            for topic, receipts in published.items():
                nursery.start_soon(_publish, publisher, topic, receipts)
            await trio.sleep_until(left + (number + 1) * pause)  # also on a machine that is late
    found = {}
    for member in away:
        progress(f"{member.name} comes back")
        began = trio.current_time()
        await breaker.end(_fault("stop", member.name))
        came = await _caught_up(member, published[member.name], began)
        if hosts[member.name] == killed and came["missing"]:
            came["told_lost"] += await _told(member, TOLD_WITHIN * testnet.epoch)
        found[member.name] = {"published": len(published[member.name]), **came}
    whole = [found[name] for name, host in hosts.items() if host != killed]
    others = [found[name] for name, host in hosts.items() if host == killed]
    have_all = bool(whole) and all(each["missing"] == each["twice"] == 0 for each in whole)
    told = all(not each["missing"] or each["told_lost"] == 1 for each in others)
    return {"ok": have_all and told, **found}


def _fault(kind: Any, target: str) -> Fault:
    return Fault(kind, target, 0.0, 0.0)


def _hosts(testnet: Testnet) -> dict[str, str]:
    """Return by the name of each subscriber that of its host, which the traces and disks of relays tell."""
    known = owners(testnet)
    boxes = ((relay, key) for relay, key, _ in relay_records(testnet, "box"))
    return {known[key]: relay for relay, key in boxes if key in known}


async def _publish(publisher: Member, topic: str, receipts: set[str]) -> None:
    async with hushcast.connect(publisher.socket) as daemon:
        receipts.add((await daemon.publish(topic, topic)).id)


async def _caught_up(member: Member, published: set[str], began: float) -> dict[str, Any]:
    """Take what comes until it is all there, or a minute is over."""
    shown: Counter[str] = Counter()
    lost, last = 0, began
    with trio.move_on_at(began + COMES_WITHIN):
        async with (
            hushcast.connect(member.socket, timeout=None) as daemon,
            daemon.subscribe(member.name, acknowledge="never") as messages,
        ):
            while published - shown.keys():
                event = await messages.next_event()
                if isinstance(event, hushcast.Message):
                    shown[event.id] += 1
                    messages.done()
                    last = trio.current_time()
                elif isinstance(event, hushcast.Lost):
                    lost += 1
    return {
        "missing": len(published - shown.keys()),
        "told_lost": lost,
        "twice": sum(count > 1 for count in shown.values()),
        "seconds": round(last - began, 1),
    }


async def _told(member: Member, within: float) -> int:
    """Return how often an application hears within so many seconds that messages are lost."""
    lost = 0
    with trio.move_on_after(within):
        async with (
            hushcast.connect(member.socket, timeout=None) as daemon,
            daemon.subscribe(member.name, acknowledge="never") as messages,
        ):
            while True:
                event = await messages.next_event()
                if isinstance(event, hushcast.Lost):
                    lost += 1
                elif isinstance(event, hushcast.Message):
                    messages.done()
    return lost
