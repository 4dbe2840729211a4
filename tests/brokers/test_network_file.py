"""network.toml of a network of brokers: what is written is read, and what no daemon could use is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_brokers.network_file import BrokersNetworkFile, brokers_section
from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.processes.config import parse_toml

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


@pytest.mark.parametrize(
    "profile", ["full/2", "full/3", "full/4", "full/3/apart", "full/3/paper", "full/2/paper/a"]
)
def test_a_network_under_full_is_read_back(profile: str) -> None:
    network = BrokersNetwork("n", profile, 60, ROOT)
    assert parsed(brokers_section(network, ONION)).network.network() == network


def test_the_id_of_a_network_says_what_brokers_learn() -> None:
    texts = ["", "layers = 2\n", 'profile = "paper"\n', "aggregation = true\n"]
    full = TEXT.replace('"clear"', '"full"')
    ids = {parsed(text + more).network.network().id for text in (full,) for more in texts}
    assert len(ids | {NETWORK.id}) == 5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("layers = 2\n", "network.layers: it is for privacy"),
        ('profile = "paper"\n', "network.profile: it is for privacy"),
        ("aggregation = true\n", "network.aggregation: it is for privacy"),
    ],
)
def test_what_means_nothing_under_clear_is_refused(more: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parsed(TEXT + more).network.check_privacy(True)
    parsed(TEXT.replace('"clear"', '"full"') + more).network.check_privacy(True)


def test_the_scheme_as_published_is_for_testnets() -> None:
    section = parsed(TEXT.replace('"clear"', '"full"') + 'profile = "paper"\n').network
    section.check_privacy(True)
    with pytest.raises(UsageError, match="is for testnets"):
        section.check_privacy(False)


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
