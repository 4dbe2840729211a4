"""Settings of the server and of proxies: what could leak or cannot be meant is refused, with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_central_network_file import DELIVERIES, NETWORK, PUBLICATIONS, onion

from hushcast_central.network_file import central_section, proxy_section
from hushcast_central.settings import ProxySettings, ServerSettings
from hushcast_central.summary import proxy_summary, server_summary
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.central.network import MAX_PROXIES, Proxy, missing_roles
from hushcast_runtime.processes.config import ProcessSettings, parse_settings

SERVER = 'state = "/s"\n[network]\ncarrier = "central"\nname = "n"\n'
LISTED = SERVER + proxy_section(PUBLICATIONS) + proxy_section(DELIVERIES)
PROXY = 'role = "deliveries"\nstate = "/s"\n' + central_section(NETWORK, onion(11), [])


def refusal(text: str, kind: type[ProcessSettings]) -> str:
    with pytest.raises(UsageError) as caught:
        parse_settings(text.encode(), "config.toml", kind)
    return str(caught.value).removeprefix("config.toml: ")


def test_little_has_to_be_said() -> None:
    server = parse_settings(SERVER.encode(), "f", ServerSettings)
    assert (server.transport, server.network.profile, server.network.epoch_seconds) == (
        "tor",
        "hardened",
        3600,
    )
    assert server.proxies() == ()
    assert server.doctors_socket() == Path("/s/doctor.sock")
    made = server.network.network(NETWORK.server, NETWORK.sealing_key)
    assert made == NETWORK, "the proxy's network is the server's"
    proxy = parse_settings(PROXY.encode(), "f", ProxySettings)
    assert (proxy.role, proxy.network.network()) == ("deliveries", NETWORK)


def test_proxies_are_listed() -> None:
    server = parse_settings(LISTED.encode(), "f", ServerSettings)
    assert server.proxies() == (PUBLICATIONS, DELIVERIES)
    assert ServerSettings.live == {"log", "listed", "wire"}, "what a reload applies"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SERVER.replace('carrier = "central"\n', ""), "network.carrier: this is missing"),
        (SERVER.replace('"central"', '"overlay"'), "network.carrier"),
        (SERVER.replace('"/s"', '"s"'), "state: give an absolute path"),
        (SERVER.replace('"/s"', f'"/{"s" * 99}"'), "state: ready.sock would have a path of"),
        (
            SERVER + proxy_section(Proxy(b"\1" * 32, Address("127.0.0.1:80"), "deliveries")),
            "#1.address: with",
        ),
        (LISTED + proxy_section(PUBLICATIONS), "two have the same key"),
        (LISTED + proxy_section(Proxy(b"\1" * 32, PUBLICATIONS.address, "deliveries")), "the same address"),
        (LISTED.replace('"deliveries"', '"delivery"'), "proxies #2.role: Invalid enum value 'delivery'"),
        (LISTED.replace('role = "deliveries"\n', ""), "proxies #2.role: this is missing"),
        (SERVER + proxy_section(PUBLICATIONS) * (MAX_PROXIES + 1), "length <= 32"),
        ('transport = "tcp"\n' + LISTED, "with transport tcp it is a loopback address"),
        ("first_roster = 1\n" + SERVER, "first_roster: there is no such key"),
    ],
)
def test_what_no_server_could_use_is_refused(text: str, told: str) -> None:
    assert told in refusal(text, ServerSettings)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'role = "deliveries"\nstate = "/s"\n',
            "network: this is missing: `hushcast join network.toml --config`",
        ),
        (PROXY.replace('"deliveries"', '"relay"'), "role: Invalid enum value 'relay'"),
        (PROXY.replace(onion(11), "127.0.0.1:7411"), "network.server: with transport tor"),
        ('transport = "tcp"\n' + PROXY, "network.server: with transport tcp"),
        (PROXY.replace(NETWORK.sealing_key.hex(), "00" * 32), "network.sealing_key: nothing can be sealed"),
        (PROXY + "[testnet]\nname = 'x'\ntraces = '/t'\nbegan = 0.0\nhost = '127.0.0.2'\n", "testnet: host"),
    ],
)
def test_what_no_proxy_could_use_is_refused(text: str, told: str) -> None:
    assert told in refusal(text, ProxySettings)


def test_a_summary_says_what_is_missing() -> None:
    server = parse_settings((SERVER + proxy_section(DELIVERIES)).encode(), "f", ServerSettings)
    found = server_summary(server)["proxies"]
    assert found == [
        f"deliveries: {DELIVERIES.key.hex()[:16]}… at {DELIVERIES.address}",
        "publications: none yet",
    ]
    assert missing_roles([]) == ["publications", "deliveries"]
    proxy = proxy_summary(parse_settings(PROXY.encode(), "f", ProxySettings))
    assert (proxy["role"], proxy["network"]) == (["deliveries"], ["n, hardened, epochs of 3,600 seconds"])
