"""Reservations between two real gateways over a network: what one reserves holds for the other's readers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mqtt_client import Message
from paho_client import PahoClient
from two_houses import House, houses

from hushcast.purposes.paho import PurposeClient

pytestmark = pytest.mark.processes

WITHIN = 120.0  # seconds; other work may share the machine
TOPIC = "home/car/position"


@contextmanager
def carrying(net: Any, folder: Path) -> Iterator[list[House]]:
    """Run a gateway with purposes beside each client; both carry reservations by their one alias."""
    purposes = folder / "purposes.txt"
    purposes.write_text("operations/billing\nmarketing/newsletter\n")
    more = {
        "[anonymous]\n": f'[purposes]\nvocabulary = "{purposes}"\n\n[anonymous]\nreserve = ["home/#"]\n'
        'purposes = ["operations", "marketing"]\n',
        "[[gateway.alias]]\n": "[[gateway.alias]]\nreservations = true\n",
    }
    with houses(net, more=more) as both:
        yield both


class Client:
    """A client of version 5, with the words of the program that came with the scheme."""

    def __init__(self, house: House, name: str) -> None:
        self.paho = PahoClient(5, house.server, name)
        self.paho.connect()
        self.calls = PurposeClient(self.paho._paho)

    def reads(self, wanted: str, purpose: str) -> None:
        self.calls.subscribe_with_purpose(wanted, purpose)
        assert self.paho._answer() == 1

    def reserve(self, aip: tuple[str, ...] = ()) -> None:
        self.calls.reserve("home/car/#", aip, ())
        assert self.paho._answer() == 0


def late(house: House, purpose: str) -> str:
    """Return what a client that comes now gets of what is retained."""
    client = Client(house, f"late {time.monotonic()}")
    try:
        client.reads(TOPIC, purpose)
        client.paho.publish("end", "end", 1)  # ordered behind what is retained
        client.reads("end", purpose)
        client.paho.publish("end", "end", 1)
        return client.paho.message(WITHIN).payload
    finally:
        client.paho.close()


def until(reached: Callable[[], bool]) -> None:
    ends = time.monotonic() + WITHIN
    while not reached():
        assert time.monotonic() < ends
        time.sleep(0.2)


def test_what_one_reserves_holds_for_the_readers_of_the_other_over_a_kill(
    tcp_testnet: Any, tmp_path: Path
) -> None:
    with carrying(tcp_testnet, tmp_path) as (cars, readers), ExitStack() as held:
        billing, newsletter = Client(readers, "billing"), Client(readers, "newsletter")
        car = Client(cars, "car")
        for client in (billing, newsletter, car):
            held.callback(client.paho.close)
        billing.reads("home/#", "operations/billing")
        newsletter.reads("home/#", "marketing/newsletter")
        readers.subscriptions_ready(1)
        car.reserve(("operations",))
        car.paho.publish(TOPIC, "for operations", 1, retain=True)
        assert billing.paho.message(WITHIN).payload == "for operations"
        assert late(readers, "operations/billing") == "for operations"
        assert late(readers, "marketing/newsletter") == "end"

        car.reserve(("marketing",))
        cars.kill()  # what it has acknowledged it still tells
        cars.start()
        until(lambda: late(readers, "operations/billing") == "end")
        assert late(readers, "marketing/newsletter") == "for operations"

        again = Client(cars, "car again")
        held.callback(again.paho.close)
        again.paho.publish(TOPIC, "for marketing", 1)
        assert newsletter.paho.message(WITHIN) == Message(TOPIC, "for marketing", 1)
        assert billing.paho._came.empty()
