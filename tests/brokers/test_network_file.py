"""network.toml of a network of brokers: what is written is read, and what no daemon could use is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_brokers.network_file import BrokersNetworkFile, brokers_section
from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.config import parse_toml

ROOT = Seed(bytes(31) + b"\1").public()
ONION = onion_address(Seed(bytes(31) + b"\2").public())
NETWORK = BrokersNetwork("n", "clear", 3600, ROOT)
TEXT = brokers_section(NETWORK, ONION)


def parsed(text: str) -> BrokersNetworkFile:
    return parse_toml(text.encode(), "network.toml", BrokersNetworkFile)


def refusal(text: str, transport: str = "tor") -> str:
    with pytest.raises(UsageError) as caught:
        parsed(text).network.check(transport)
    return str(caught.value)


def test_what_is_written_is_read() -> None:
    section = parsed(TEXT).network
    section.check("tor")
    assert (section.network(), section.address()) == (NETWORK, ONION)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64))
def test_any_name_is_read_back(name: str) -> None:
    network = BrokersNetwork(name, "clear", 60, ROOT)
    assert parsed(brokers_section(network, ONION)).network.network() == network


def test_a_network_on_one_machine() -> None:
    text = brokers_section(NETWORK, Address("127.0.0.1:1"))
    parsed(text).network.check("tcp")
    assert refusal(text).startswith("network.root: with transport tor it must be an onion address")
    assert refusal(TEXT, "tcp").startswith("network.root: with transport tcp it is a loopback address")


@pytest.mark.parametrize(
    ("written", "instead", "key"),
    [
        ('carrier = "brokers"', 'carrier = "central"', "network.carrier"),
        ('privacy = "clear"', 'privacy = "none"', "network.privacy"),
        (ROOT.hex(), ROOT.hex()[1:], "network.root_key"),
        ("epoch_seconds = 3600", "epoch_seconds = 4", "network.epoch_seconds"),
        ("root = ", "server = ", "network.server"),
    ],
)
def test_what_is_wrong_is_named(written: str, instead: str, key: str) -> None:
    assert key in refusal(TEXT.replace(written, instead))
