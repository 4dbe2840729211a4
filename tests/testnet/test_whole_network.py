"""One private Tor network with everything on it: messages, gateways, a located feed, purposes, an analysis.

The network is dear to start and the same for all that travels: each kind has one conversation here. What else
relays, gateways, feeds and purposes do is tried over loopback and in simulations.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from client_kinds import KINDS, require
from fleet_scene import POSITION, PURPOSES, Car, Fleet, FleetHouse, fleet_houses
from located_scene import Scene
from mosquitto_client import MosquittoClient
from mqtt_client import Message, MqttClient
from paho_client import PahoClient
from recount import recount
from running_net import RunningTestnet
from sockets_seen import LOOPBACK, connections, look_at_sockets, socket_owners, unix_paths
from two_houses import House, houses

import hushcast
from hushcast_located.subscriber.subscription_files import SubscriptionFiles
from hushcast_testnet import testnet

pytestmark = [pytest.mark.first, pytest.mark.tor, pytest.mark.processes]

WITHIN = 120.0  # seconds for anything between daemons; others share the machine


def strange_sockets(net: RunningTestnet) -> set[Any]:
    """Return sockets of daemons and of the directory that lead elsewhere than to their tor."""
    tor = testnet.load(net.directory).tor
    tor_pids = {process.pid for process in tor.processes}
    doors = {int(door.split(":")[1]) for one in tor.clients for door in (one.control, one.socks)}
    pids = {name: net.pid(name) for name in [*net.daemons, "directory"]}
    looks = [look_at_sockets(pids, tor_pids, doors) for _ in range(2)]
    assert looks[0][0].total() > 10, "they do have connections: the look sees them"
    # What was opened or closed while the kernel's table was read has no owner yet or any more.
    return looks[0][1] & looks[1][1]


def with_openssl(net: RunningTestnet) -> set[str]:
    """Return the daemons that have loaded it; they use libsodium, and are smaller without."""
    maps = {name: Path(f"/proc/{net.pid(name)}/maps").read_text() for name in [*net.daemons, "directory"]}
    assert all("sodium" in one for one in maps.values())
    return {name for name, one in maps.items() if "libcrypto" in one}


async def test_sixty_publications_by_three_reach_three_subscribers_of_two_topics(
    tor_testnet: RunningTestnet,
) -> None:
    net, first, second = tor_testnet, "weather", "chess"
    strange: set[Any] = set()
    async with (
        net.listening("client-1", first) as one,
        net.listening("client-2", second) as two,
        net.listening("relay-3", first) as three,
    ):
        for name, topic in (("client-1", first), ("client-2", second), ("relay-3", first)):
            await net.told(name, topic, 9)  # of ten relays one is the host
        ids: dict[str, set[str]] = {first: set(), second: set()}

        async def publish(name: str, topic: str, number: int) -> None:
            ids[topic].add(await net.publish(name, topic, f"{topic} {number}"))

        async with trio.open_nursery() as publishing:
            for number in range(60):
                name = ("relay-1", "relay-7", "client-2")[number % 3]
                publishing.start_soon(publish, name, (first, second)[number % 2], number)
                await trio.sleep(0.1)
                if number % 6 == 5:
                    strange |= strange_sockets(net)
        assert len(ids[first] | ids[second]) == 60
        for listening, topic in ((one, first), (two, second), (three, first)):
            await listening.until(ids[topic])
        await trio.sleep(3)  # what is to come twice would come now
        for listening, topic in ((one, first), (two, second), (three, first)):
            assert listening.shown == dict.fromkeys(ids[topic], 1)
    assert not strange
    assert not with_openssl(net)


READINGS = 5


def test_a_reading_reaches_the_other_house_and_no_socket_leads_elsewhere(
    tor_testnet: RunningTestnet, capsys: Any
) -> None:
    """A sensor of one house and a dashboard of another, by mosquitto's programs."""
    require(KINDS[0])
    with houses(tor_testnet) as (sensors_house, dashboards_house):
        sensor = MosquittoClient(5, sensors_house.server, "sensor")
        dashboard = MosquittoClient(5, dashboards_house.server, "dashboard")
        dashboard.connect()
        try:
            assert dashboard.subscribe("hush/home/#", 1) == 1
            dashboards_house.subscriptions_ready(1)
            delays: list[float] = []
            strange: set[Any] = set()
            for number in range(READINGS):
                began = time.monotonic()
                sensor.publish("hush/home/kitchen/temp", str(number), 1)
                both = (sensors_house, dashboards_house)
                looks = [sockets_of_gateways(tor_testnet, both) for _ in range(2)]
                strange |= strange_sockets(tor_testnet) | looks[0] & looks[1]
                came = dashboard.message(WITHIN)
                delays.append(time.monotonic() - began)
                assert came == Message("hush/home/kitchen/temp", str(number), 1)
        finally:
            dashboard.close()
    assert not strange
    with capsys.disabled():
        middle, longest = statistics.median(delays), max(delays)
        print(f"\nover Tor, {READINGS} readings: median {middle:.2f} s, longest {longest:.2f} s")


def sockets_of_gateways(net: RunningTestnet, both: tuple[House, House]) -> set[Any]:
    """Return sockets of gateways, and Unix sockets of their daemons, that lead where nothing should."""
    found: set[Any] = set()
    for house in both:
        pid, port = house.process.pid, (LOOPBACK, house.member.port)
        owned = socket_owners([pid])
        for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
            lines = connections(pid, kind)
            found |= {(kind, own, other) for own, other, inode, _ in lines if inode in owned and own != port}
        # A socket without a path is one end of a pair inside the process, or leads to the daemon's.
        told_at = {f"{house.member.state}/{name}.sock" for name in ("ready", "doctor", "operators")}
        found |= unix_paths(pid) - {"", house.member.socket, *told_at}
        daemon = house.member.daemon
        own = {str(net.socket(daemon)), f"{net.member(daemon).state}/ready.sock"}
        found |= unix_paths(net.pid(daemon)) - {"", *own}
    return found


HERE = {"lat": 60.17, "lon": 24.94}
SUBSCRIBERS = ("ann", "bob", "cid", "dot")
INTERVALS, LEFT_OUT = 4, 3
INTERVAL = 12  # seconds; a message takes some over Tor, and there are two on the way
PATIENCE = 6.0  # seconds that a subscriber gives the answer that another has overtaken


async def test_an_interval_that_the_provider_leaves_out_is_caught(
    tor_testnet: RunningTestnet, tmp_path: Path, capsys: Any
) -> None:
    net = tor_testnet
    daemons = {
        "owner": "client-1",
        "provider": "client-2",
        **dict(zip(SUBSCRIBERS, net.relays, strict=False)),
    }
    elsewhere: set[Any] = set()
    async with trio.open_nursery() as nursery:
        scene = Scene(tmp_path, nursery, {who: net.socket(name) for who, name in daemons.items()})
        await scene.start_provider(LEFT_OUT)
        for name in SUBSCRIBERS:
            await scene.start_subscriber(name, "shoe", PATIENCE)
        for name in SUBSCRIBERS:
            await scene.until(name, "RequestAccepted", 1, 120)
        for number in range(1, INTERVALS + 1):
            await trio.sleep(INTERVAL - time.time() % INTERVAL)
            await scene.batch(number, INTERVAL, [HERE | {"id": f"{number}", "text": "a shoe at a discount"}])
            elsewhere |= strange_sockets(net)
        for name in SUBSCRIBERS:
            await scene.until(name, "Interval", INTERVALS - 1, 60)
        nursery.cancel_scope.cancel()
    await net.forget((tmp_path / "feed.link").read_text(), daemons["provider"])
    for name in SUBSCRIBERS:
        kept = SubscriptionFiles(tmp_path / name, "feed")
        await net.forget(kept.load().answers, daemons[name])
        kept.close()
    caught = []
    for name in SUBSCRIBERS:
        told = scene.told[name]
        found = [one for one in told if one["event"] == "Interval"]
        numbers = [one["number"] for one in found]
        assert numbers == [number for number in range(1, INTERVALS + 1) if number != LEFT_OUT]
        assert all(one["messages"] == [str(one["number"])] for one in found)
        # A slow machine tells that it is silent, before the next answer shows that it is missing.
        troubles = [one for one in told if one["event"] == "FeedTrouble" and one["problem"] != "silent"]
        assert len(troubles) == 1, told
        trouble = troubles[0]
        said = trouble["problem"], trouble["first"], trouble["last"]
        assert said == ("missing interval", LEFT_OUT, LEFT_OUT), told
        # Within an interval of the moment from which it can be noticed: the next answer.
        assert told.index(trouble) < told.index(found[numbers.index(LEFT_OUT + 1)])
        caught.append(trouble["at"] - scene.published[LEFT_OUT + 1])
    assert max(caught) < INTERVAL
    assert not scene.strange
    assert not elsewhere
    with capsys.disabled():
        print(f"\nover Tor: caught {min(caught):.1f} to {max(caught):.1f} s after the next interval's batch")


FLEET = {"car": "relay-1", "dashboard": "client-1", "advertiser": "client-2"}
STRANGER = "relay-2"
"""The daemon of somebody who has the topic's link, and no keys."""


def test_a_cars_position_comes_to_whom_it_is_for_and_after_a_withdrawal_to_nobody(
    tor_testnet: RunningTestnet, tmp_path: Path
) -> None:
    require(KINDS[0])
    net, fleet = tor_testnet, Fleet(tmp_path)
    with fleet_houses(net, fleet, FLEET) as houses, ExitStack() as held:
        clients: dict[str, MqttClient] = {
            "dashboard": PahoClient(4, houses["dashboard"].server, "dashboard"),
            "advertiser": MosquittoClient(5, houses["advertiser"].server, "advertiser"),
        }
        for name, purpose in (
            ("dashboard", "operations/routing"),
            ("advertiser", "marketing/individualized"),
        ):
            clients[name].connect()
            held.callback(clients[name].close)
            assert clients[name].subscribe(f"!AP/hush/cars/HASH{{{purpose}}}", 1) == 1
        stranger = held.enter_context(watching(net, fleet))
        for name in clients:
            houses[name].subscriptions_ready(1, "cars")
        with closing(Car(houses["car"])) as car:
            consent(car, fleet, stranger, clients)
        fleet.withdraw("dashboard")
        fleet.hand_over()
        houses["car"].kill()
        houses["car"].start()  # it has its reservation on disk, and the new vocabulary
        with closing(Car(houses["car"])) as car:
            car.publish("fourth")
            fourth = stranger.next()
        assert fleet.opened_by(fourth.payload) == set()
        for name in clients:
            # Relays bring it, as it is for what these were granted, but by keys that they do not have.
            until(partial(has_come, net, houses[name], fourth))
        fleet.hand_over("advertiser", "agency")
        assert fleet.opened_by(fourth.payload) == {"advertiser", "agency"}
    for client in clients.values():
        assert client._came.empty()
    nothing_shows(net, fleet, stranger.found)
    trio.run(net.forget, hushcast.read_link(fleet.link), *FLEET.values(), STRANGER)


def consent(car: Car, fleet: Fleet, stranger: Stranger, clients: dict[str, MqttClient]) -> None:
    """Have the car allow, withdraw, and allow more."""
    car.reserve(("operations", "marketing"), ("marketing/individualized",))
    car.publish("first")
    assert fleet.opened_by(stranger.next().payload) == {"dashboard", "agency"}
    assert clients["dashboard"].message(WITHIN) == Message(POSITION, "first", 1)

    car.reserve()
    car.publish("second")
    assert fleet.opened_by(stranger.next().payload) == set()

    car.reserve(("operations", "marketing"))
    car.publish("third")
    assert fleet.opened_by(stranger.next().payload) == {"dashboard", "advertiser", "agency"}
    for client in clients.values():  # the next that the one is given, and the first that the other is
        assert client.message(WITHIN) == Message(POSITION, "third", 1)


def nothing_shows(net: RunningTestnet, fleet: Fleet, found: list[hushcast.Message]) -> None:
    """What relays keep and see has no purpose, and nothing of one that anybody could compute."""
    words = {word.encode() for word in PURPOSES.replace("/", "\n").split()} | {b"position"}
    tags = fleet.tags()
    telling = words | {tag.encode() for tag in tags} | {bytes.fromhex(tag) for tag in tags}
    disks = {relay: disk(Path(net.member(relay).state)) for relay in net.relays}
    assert all(one.payload in disks[STRANGER] for one in found), "otherwise this shows nothing"
    for relay, data in disks.items():
        assert not [one for one in telling if one in data], relay
    seen = [line for relay in net.relays for line in net.observations(relay)]
    text = "\n".join(map(str, seen)).encode()
    assert not [one for one in telling if one in text]
    ids = {one.id for one in found}
    drops = [line for line in seen if line["kind"] == "drop" and line["message"] in ids]
    assert {line["message"] for line in drops} == ids
    # One for three elements of a cover and one for nobody have the same form.
    assert len({(len(line["tokens"]), line["size"]) for line in drops}) == 1


def disk(state: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(state.rglob("*")) if path.is_file())


class Stranger:
    """What comes to who has the topic's link alone."""

    def __init__(self, messages: Any) -> None:
        self._messages = messages
        self.found: list[hushcast.Message] = []

    def next(self) -> hushcast.Message:
        while not isinstance(event := self._messages.next_event(WITHIN), hushcast.Message):
            assert event is not None, "the subscription has ended"
        self.found.append(event)
        return event


@contextmanager
def watching(net: RunningTestnet, fleet: Fleet) -> Iterator[Stranger]:
    link = hushcast.read_link(fleet.link)
    with (
        hushcast.connect_sync(net.socket(STRANGER)) as daemon,
        daemon.subscribe(link, acknowledge="never") as messages,
    ):
        yield Stranger(messages)


def has_come(net: RunningTestnet, house: FleetHouse, message: hushcast.Message) -> bool:
    """Tell whether a message came to a house's daemon, and all that did to its gateway."""
    told = net.truths(house.member.daemon)
    ids = {line["message"] for line in told if line["kind"] == "delivered" and line["topic"] == "cars"}
    return message.id in ids and house.counted("hushcast_network_arrived_total") == len(ids)


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)


ANALYSED_WITHIN = 600  # seconds; other work may share the machine
TOLD_WITHIN = 120  # seconds: a drop at an origin that does not answer ends after this at the latest
PUBLISHERS = ("client-2", "relay-1")


@pytest.mark.spark
async def test_figures_of_real_traces_over_tor_agree_with_a_recount(
    tor_testnet: RunningTestnet, tmp_path: Path, quick_spark: dict[str, str]
) -> None:
    """Of all that was said before, and of eight more messages."""
    net, topic, ids = tor_testnet, "to be analysed", set()
    async with net.listening("client-1", topic) as one, net.listening("relay-3", topic) as other:
        for number in range(8):
            ids.add(await net.publish(PUBLISHERS[number % 2], topic, str(number)))
        for listening in (one, other):
            await listening.until(ids)
    await all_told(net, ids)
    # The daemons write on: both counts are of one moment.
    traces = tmp_path / "traces"
    shutil.copytree(net.directory / "traces", traces)
    options = ["--out", str(tmp_path / "out"), "--colluding", "0.3", "--attack", "first-spy", "--json"]
    analyze = [sys.executable, "-m", "hushcast_cli.start", "lab", "analyze", str(traces), *options]
    with trio.fail_after(ANALYSED_WITHIN):
        done = await trio.run_process(
            analyze, capture_stdout=True, capture_stderr=True, check=False, env=quick_spark
        )
    assert done.returncode == 0, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    expected, found = recount(traces), summary["network"]
    latencies, _ = expected.pop("latencies"), expected.pop("lengths")
    expected |= {f"latency_p{100 * share:.0f}": seconds for share, seconds in latencies.items()}
    expected["to_ideal"] = expected["transmissions"] / expected["ideal"]
    expected["runs"] = 1
    cut_off = sum(not line.endswith("}") for line in lines_of(traces))
    assert found.pop("rejected_lines") == cut_off
    assert found == pytest.approx(expected, rel=1e-9)
    assert found["publications"] >= len(ids)
    assert found["pairs"] >= 2 * len(ids)
    (attack,) = summary["attacks"]
    assert (attack["attack"], attack["profile"]) == ("first-spy", "hardened")
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()


async def all_told(net: RunningTestnet, ids: set[str]) -> None:
    """Wait for the publishers' truths: each is written when the last drop of its round has ended."""
    with trio.fail_after(TOLD_WITHIN):
        while ids - published(net):  # noqa: ASYNC110 - other processes make it true
            await trio.sleep(0.1)


def published(net: RunningTestnet) -> set[str]:
    truths = [truth for name in PUBLISHERS for truth in net.truths(name)]
    return {truth["message"] for truth in truths if truth["kind"] == "published"}


def lines_of(traces: Path) -> list[str]:
    return [line for file in traces.glob("*.jsonl") for line in file.read_text().splitlines()]
