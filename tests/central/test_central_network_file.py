"""network.toml of a central network: what is written is read, and what no daemon could use is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_central.network_file import (
    CentralNetworkFile,
    ProxySection,
    central_section,
    check_proxies,
    proxy_section,
)
from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import MAX_PROXIES, CentralNetwork, Proxy
from hushcast_runtime.processes.config import Section, parse_toml


def seed(number: int) -> Seed:
    return Seed(number.to_bytes(32, "big"))


def onion(number: int) -> Address:
    return onion_address(seed(number).public())


NETWORK = CentralNetwork("n", "hardened", 3600, seed(1).public(), SealingKey(b"\7" * 32).public())
PUBLICATIONS = Proxy(seed(2).public(), onion(12), "publications")
DELIVERIES = Proxy(seed(3).public(), onion(13), "deliveries")
TEXT = central_section(NETWORK, onion(11), [PUBLICATIONS, DELIVERIES])


class ProxyLines(Section, frozen=True, kw_only=True):
    """What a proxy gives out."""

    proxies: tuple[ProxySection, ...]


def parsed(text: str) -> CentralNetworkFile:
    return parse_toml(text.encode(), "network.toml", CentralNetworkFile)


def refusal(text: str, transport: str = "tor") -> str:
    with pytest.raises(UsageError) as caught:
        parsed(text).network.check(transport)
    return str(caught.value)


def test_what_is_written_is_read() -> None:
    section = parsed(TEXT).network
    section.check("tor")
    assert (section.network(), section.proxies()) == (NETWORK, [PUBLICATIONS, DELIVERIES])
    assert section.server == onion(11)
    assert section.central_profile().name == "hardened"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64))
def test_any_name_is_read_back(name: str) -> None:
    network = CentralNetwork(name, "paper", 60, NETWORK.server, NETWORK.sealing_key)
    assert (
        parsed(central_section(network, onion(11), [PUBLICATIONS, DELIVERIES])).network.network() == network
    )


def test_a_proxys_lines_are_what_the_servers_operator_lists() -> None:
    lines = parse_toml(proxy_section(DELIVERIES).encode(), "proxy.toml", ProxyLines)
    check_proxies(lines.proxies, "tor", "proxies")
    assert [(one.key, one.address, one.role) for one in lines.proxies] == [
        (DELIVERIES.key.hex(), DELIVERIES.address, "deliveries")
    ]


def test_a_network_on_one_machine() -> None:
    proxies = [replace(PUBLICATIONS, address="127.0.0.1:2"), replace(DELIVERIES, address="127.0.0.1:3")]
    text = central_section(NETWORK, Address("127.0.0.1:1"), proxies)
    parsed(text).network.check("tcp")
    assert refusal(text).startswith("network.server: with transport tor it must be an onion address")


@pytest.mark.parametrize("missing", ["publications", "deliveries"])
def test_each_role_has_a_proxy(missing: str) -> None:
    left = [proxy for proxy in (PUBLICATIONS, DELIVERIES) if proxy.role != missing]
    assert f"none is for {missing}; ask" in refusal(central_section(NETWORK, onion(11), left))


def test_proxies_stay_inside_tor() -> None:
    outside = replace(DELIVERIES, address="127.0.0.1:3")
    found = refusal(central_section(NETWORK, onion(11), [PUBLICATIONS, outside]))
    assert found.startswith("network.proxies #2.address: with transport tor it must be an onion address")


def test_keys_differ() -> None:
    same = replace(DELIVERIES, key=PUBLICATIONS.key)
    assert "two have the same key" in refusal(central_section(NETWORK, onion(11), [PUBLICATIONS, same]))
    servers = replace(DELIVERIES, key=NETWORK.server)
    assert "the server's key" in refusal(central_section(NETWORK, onion(11), [PUBLICATIONS, servers]))


def test_there_are_not_more_proxies_than_one_server_has_work_for() -> None:
    many = [Proxy(seed(n + 20).public(), onion(n + 20), "deliveries") for n in range(MAX_PROXIES)]
    assert "network.proxies" in refusal(central_section(NETWORK, onion(11), [PUBLICATIONS, *many]))
    parsed(central_section(NETWORK, onion(11), [PUBLICATIONS, *many[1:]])).network.check("tor")


def test_nothing_can_be_sealed_to_a_key_of_small_order() -> None:
    text = TEXT.replace(NETWORK.sealing_key.hex(), "00" * 32)
    assert refusal(text).startswith("network.sealing_key: ")


def test_it_says_its_carrier() -> None:
    assert "network.carrier" in refusal(TEXT.replace('carrier = "central"', 'carrier = "overlay"'))


def test_before_there_are_proxies_it_is_enough_to_start_one() -> None:
    text = central_section(NETWORK, onion(11), [])
    parsed(text).network.check_server("tor")
    assert "none is for publications" in refusal(text)
