"""A car's position over a private Tor network opens for whom it is for, and after a withdrawal for nobody."""

from __future__ import annotations

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
from mosquitto_client import MosquittoClient
from mqtt_client import Message, MqttClient
from paho_client import PahoClient

import hushcast

pytestmark = [pytest.mark.tor, pytest.mark.processes]

WITHIN = 120.0  # seconds
DAEMONS = {"car": "relay-1", "dashboard": "client-1", "advertiser": "client-2"}
STRANGER = "relay-2"
"""The daemon of somebody who has the topic's link, and no keys."""


def test_a_cars_position_comes_to_whom_it_is_for_and_after_a_withdrawal_to_nobody(
    tor_testnet: Any, tmp_path: Path
) -> None:
    require(KINDS[0])
    net, fleet = tor_testnet, Fleet(tmp_path)
    with fleet_houses(net, fleet, DAEMONS) as houses, ExitStack() as held:
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
    trio.run(net.forget, hushcast.read_link(fleet.link), *DAEMONS.values(), STRANGER)


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


def nothing_shows(net: Any, fleet: Fleet, found: list[hushcast.Message]) -> None:
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
def watching(net: Any, fleet: Fleet) -> Iterator[Stranger]:
    link = hushcast.read_link(fleet.link)
    with (
        hushcast.connect_sync(net.socket(STRANGER)) as daemon,
        daemon.subscribe(link, acknowledge="never") as messages,
    ):
        yield Stranger(messages)


def has_come(net: Any, house: FleetHouse, message: hushcast.Message) -> bool:
    """Tell whether a message came to a house's daemon, and all that did to its gateway."""
    told = net.truths(house.member.daemon)
    ids = {line["message"] for line in told if line["kind"] == "delivered" and line["topic"] == "cars"}
    return message.id in ids and house.counted("hushcast_network_arrived_total") == len(ids)


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)
