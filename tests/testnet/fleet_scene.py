"""A fleet whose cars' positions are sealed for purposes: who grants, the gateways, and the car's client."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mqtt_client import WITHIN
from paho_client import PahoClient
from two_houses import House, running

from hushcast.purposes.paho import PurposeClient
from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.purposes.cover_tags import MAX_ELEMENT_TAGS, message_tags
from hushcast_protocol.purposes.grants import read_grant
from hushcast_protocol.purposes.key_cover import CoverElement
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_protocol.purposes.sealed_messages import Opener
from hushcast_protocol.purposes.signed_vocabulary import read_issued
from hushcast_testnet import gateways

PURPOSES = """\
operations/billing
operations/routing
marketing/individualized
marketing/newsletter
research
"""
GRANTED = {"dashboard": "operations", "advertiser": "marketing/individualized", "agency": "marketing"}
"""Who was granted what, in the order of the grants' numbers."""
POSITION = "hush/cars/7/position"

_CONFIG = """\
program = "gateway"
state = "{state}"
metrics = "unix:{state}.metrics"

[[listen]]
kind = "tcp"
port = {port}

[[listen]]
kind = "unix"
path = "{socket}"

[purposes]
vocabulary = "{purposes}"

[anonymous]
publish = ["#"]
subscribe = ["#"]
reserve = ["hush/cars/#"]
purposes = ["operations", "marketing"]

[daemon]
socket = "{daemon}"

[[gateway.alias]]
name = "cars"
link_file = "{link}"

[gateway.alias.keys]
vocabulary_file = "{vocabulary}"
issuer = "{issuer}"
"""
_GRANTED = """\
reader_key_file = "{key}"
grant_files = ["{grant}"]
"""


def typed(*arguments: object) -> Any:
    """Run a command and return what it told."""
    command = [sys.executable, "-m", "hushcast_cli.start", "--json", *map(str, arguments)]
    done = subprocess.run(command, timeout=WITHIN, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


class Fleet:
    """The issuer's folder, and the files that others have of it; all is made by the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._issuer = folder, folder / "fleet"
        self.purposes, self.link = folder / "purposes.txt", folder / "cars.link"
        self.vocabulary = folder / "fleet.vocabulary"
        self.purposes.write_text(PURPOSES)
        typed("topic", "new", "cars", "--private", "--output", self.link)
        self.public = typed("purpose", "vocabulary", "new", self._issuer, self.purposes)["issuer"]
        for name, purpose in GRANTED.items():
            reader = typed("purpose", "key", "new", self.key(name))["reader"]
            typed("purpose", "grant", self._issuer, "--to", reader, "--for", purpose, "--as", name)
        self.hand_over(*GRANTED)

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def grant(self, name: str) -> Path:
        """A reader's grant, as it was handed over last."""
        return self.folder / f"{name}.grant"

    def hand_over(self, *names: str) -> None:
        """Give the vocabulary to all, and readers their grants."""
        self.vocabulary.write_bytes((self._issuer / "vocabulary").read_bytes())
        for name in names:
            made = self._issuer / "grants" / f"{list(GRANTED).index(name) + 1}.grant"
            self.grant(name).write_bytes(made.read_bytes())

    def withdraw(self, name: str) -> None:
        typed("purpose", "withdraw", self._issuer, list(GRANTED).index(name) + 1, "--at-once")

    def opened_by(self, sealed: bytes) -> set[str]:
        """Who can open a message, by their files alone."""
        return {name for name in GRANTED if self._opens(name, sealed)}

    def _opens(self, name: str, sealed: bytes) -> bool:
        key = AgreementKey(self.key(name).read_bytes())
        grant = read_grant(self.grant(name).read_bytes(), key, bytes.fromhex(self.public))
        try:
            Opener([grant]).open(sealed)
        except PurposeError:
            return False
        return True

    def tags(self) -> set[str]:
        """All tags that there are: who has the vocabulary, which is public, can compute them."""
        issued = read_issued(self.vocabulary.read_bytes())
        every = [CoverElement(Purpose(one), whole) for one in issued.body.purposes for whole in (False, True)]
        issuer = issued.body.issuer
        wide = message_tags(issuer, every * MAX_ELEMENT_TAGS)
        return set(wide.union(*(message_tags(issuer, [one]) for one in every)))


class FleetHouse(House):
    """A gateway, and what it counts."""

    def counted(self, name: str) -> int:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(WITHIN)
            asked.connect(f"{self.member.state}.metrics")
            asked.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            told = b"".join(iter(lambda: asked.recv(65_536), b"")).decode()
        (value,) = [line.split()[1] for line in told.splitlines() if line.startswith(name + " ")]
        return int(float(value))


@contextmanager
def fleet_houses(net: Any, fleet: Fleet, daemons: dict[str, str]) -> Iterator[dict[str, FleetHouse]]:
    """Run a gateway beside each of these daemons, by who has it; who was granted something reads."""
    with gateways.prepared(fleet.folder, [net.member(name) for name in daemons.values()]) as members:
        houses = {who: FleetHouse(net, member) for who, member in zip(daemons, members, strict=True)}
        for who, house in houses.items():
            text = _CONFIG.format(
                state=house.member.state,
                port=house.member.port,
                socket=house.member.socket,
                purposes=fleet.purposes,
                daemon=net.socket(house.member.daemon),
                link=fleet.link,
                vocabulary=fleet.vocabulary,
                issuer=fleet.public,
            )
            if who in GRANTED:
                text += _GRANTED.format(key=fleet.key(who), grant=fleet.grant(who))
            Path(house.member.config).write_text(text)
        with running(list(houses.values())):
            yield houses


class Car:
    """The car's client: paho's, in version 5, with the calls of the program that came with the scheme."""

    def __init__(self, house: House) -> None:
        self._client = PahoClient(5, house.server, "car")
        self._client.connect()
        self._calls = PurposeClient(self._client._paho)

    def reserve(self, aip: tuple[str, ...] = (), pip: tuple[str, ...] = ()) -> None:
        self._calls.reserve("hush/cars/#", aip, pip)
        assert self._client._answer() == 0

    def publish(self, payload: str) -> None:
        self._client.publish(POSITION, payload, 1)

    def close(self) -> None:
        self._client.close()
