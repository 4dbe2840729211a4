"""Clients that others wrote in two houses, a network between them, and kills of gateways and daemons."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import trio
from client_kinds import KINDS, end_helpers
from mqtt_client import Message, MqttClient
from paho_client import PahoClient
from two_houses import House, houses

pytestmark = pytest.mark.processes

ARRIVES_WITHIN = 120.0  # seconds; daemons that were killed are dialled again with backoff
BETWEEN = 0.05  # seconds from one message of the stream to the next


@pytest.fixture(scope="module")
def two(running_testnet: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[House]]:
    with (
        running_testnet(tmp_path_factory.mktemp("houses"), 4, 2, "tcp", 3_600) as net,
        houses(net, "will_jitter = 1\n") as both,
    ):
        yield both
    end_helpers()


def test_clients_of_many_kinds_meet_by_alias_and_map(two: list[House]) -> None:
    sensors_house, dashboards_house = two
    # Gateways of a testnet have no listener for WebSockets.
    kinds = [kind for kind in KINDS if kind.is_there() and kind.name != "mqtt.js-ws"]
    with ExitStack() as held:

        def connect(make: Callable[..., MqttClient], *given: Any, **named: Any) -> MqttClient:
            client = make(*given, **named)
            client.connect()
            held.callback(client.close)
            return client

        by_map, by_alias = {}, {}
        for kind in kinds:
            client = by_map[kind] = connect(kind.client, dashboards_house.server, f"{kind} by map")
            assert client.subscribe(f"home/{kind}/+", 2) == 1
            client = by_alias[kind] = connect(kind.client, dashboards_house.server, f"{kind} by alias")
            assert client.subscribe(f"hush/home/{kind}/#", 2) == 1
        dashboards_house.subscriptions_ready(1)
        for kind in kinds:
            sensor = connect(kind.client, sensors_house.server, f"{kind} sensor")
            for qos in (0, 1, 2):
                sensor.publish(f"home/{kind}/temp", f"{qos} by map", qos, retain=qos == 1)
                sensor.publish(f"hush/home/{kind}/temp", f"{qos} by alias", qos)
        for kind in kinds:
            # Each has a path inside the topic: what is mapped has all of its name.
            for client, how, topic in (
                (by_map[kind], "map", f"home/{kind}/temp"),
                (by_alias[kind], "alias", f"hush/home/{kind}/temp"),
            ):
                found = {client.message(ARRIVES_WITHIN) for _ in range(3)}
                assert found == {Message(topic, f"{qos} by {how}", min(qos, 1)) for qos in (0, 1, 2)}
            late = connect(kind.client, dashboards_house.server, f"{kind} late")
            late.subscribe(f"home/{kind}/#", 1)
            assert late.message() == Message(f"home/{kind}/temp", "1 by map", 1, retain=True)
        for kind in kinds:
            will = Message(f"home/{kind}/will", "gone", 1)
            mortal = kind.client(sensors_house.server, f"{kind} mortal", will=will)
            mortal.connect()
            mortal.subscribe(f"nothing/{kind}", 0)  # mosquitto_sub connects with this only
            mortal.die()
        for kind in kinds:
            assert by_map[kind].message(ARRIVES_WITHIN) == Message(f"home/{kind}/will", "gone", 1)


def test_what_was_acknowledged_arrives_whatever_is_killed(two: list[House]) -> None:
    """A stream at QoS 1, to a session whose client is away while gateways and daemons are killed."""
    here, there = two
    reader = PahoClient(5, there.server, "reader", lasting=True)
    reader.connect()
    assert reader.subscribe("home/stream/+", 1) == 1
    there.subscriptions_ready(1)
    reader.close()
    stream = Stream(here)
    stream.start()
    for house in two:
        stream.until_more(10)
        house.kill()
        house.start()
        stream.until_more(10)
        trio.run(house.net.restart, house.member.daemon, True)
    stream.until_more(10)
    stream.end()
    back = PahoClient(5, there.server, "reader", lasting=True)
    assert back.connect() is True
    missing = set(stream.acknowledged)
    until = time.monotonic() + ARRIVES_WITHIN
    try:
        while missing and time.monotonic() < until:
            missing.discard(back.message(until - time.monotonic()).payload)
    except queue.Empty:
        pass
    finally:
        back.close()
    assert not missing, f"{len(missing)} of {len(stream.acknowledged)} are lost"


class Stream(threading.Thread):
    """Publishes, and connects again whenever its connection breaks."""

    def __init__(self, house: House) -> None:
        super().__init__(daemon=True)
        self._house = house
        self._ends = threading.Event()
        self.acknowledged: list[str] = []

    def run(self) -> None:
        number = 0
        while not self._ends.is_set():
            client = PahoClient(4, self._house.server, "stream")
            try:
                client.connect()
                while not self._ends.wait(BETWEEN):
                    number += 1
                    client.publish("home/stream/a", str(number), 1)
                    self.acknowledged.append(str(number))
            except ConnectionError:
                self._ends.wait(BETWEEN)
            finally:
                client.close()

    def until_more(self, count: int) -> None:
        until, wanted = time.monotonic() + ARRIVES_WITHIN, len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < until, "nothing is acknowledged any more"
            time.sleep(BETWEEN)

    def end(self) -> None:
        self._ends.set()
        self.join(ARRIVES_WITHIN)
        assert not self.is_alive()
