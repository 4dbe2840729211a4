"""Addresses: three forms, nothing else, and what key they are made of."""

import pytest
from core_examples import bytes32, properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.addresses import (
    MAX_ADDRESS,
    ONION_PORT,
    is_of_key,
    is_onion,
    memory_address,
    onion_address,
    parse_address,
    split,
)
from hushcast_protocol.base.errors import DecodeError

KEY = bytes(range(32))

# The Tor project's own service, in its documentation; the parts are checked by `tor` itself.
TOR_PROJECT = "2gzyxa5ihm7nsggfxnu52rck2vv4rvmdlkiu3zzui5du4xyclen53wid.onion"


def test_a_known_onion_address_is_accepted():
    address = parse_address(f"{TOR_PROJECT}:80")
    assert is_onion(address)
    assert split(address) == (TOR_PROJECT, 80)


@properties(100)
@given(bytes32)
def test_addresses_made_of_a_key_belong_to_it_alone(key):
    other = bytes([key[0] ^ 1]) + key[1:]
    for make in (onion_address, memory_address):
        address = make(key)
        assert parse_address(address) == address
        assert len(address) <= MAX_ADDRESS
        assert is_of_key(address, key)
        assert not is_of_key(address, other)
    assert split(onion_address(key))[1] == ONION_PORT
    assert is_onion(onion_address(key))
    assert not is_onion(memory_address(key))


def test_an_onion_service_may_listen_on_any_port():
    address = parse_address(onion_address(KEY).replace(f":{ONION_PORT}", ":65535"))
    assert is_of_key(address, KEY)


def test_every_changed_character_of_an_onion_address_is_refused():
    address = onion_address(KEY)
    for index in range(56):
        for other in "abcdefghijklmnopqrstuvwxyz234567":
            changed = address[:index] + other + address[index + 1 :]
            if changed != address:
                with pytest.raises(DecodeError):
                    parse_address(changed)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.255.255.255", "127.0.0.0"])
@pytest.mark.parametrize("port", [1, 80, 65535])
def test_loopback_addresses_are_accepted_and_of_any_key(host, port):
    address = parse_address(f"{host}:{port}")
    assert split(address) == (host, port)
    assert not is_onion(address)
    assert is_of_key(address, KEY)


ONION = onion_address(KEY).rpartition(":")[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "localhost:80",
        "128.0.0.1:80",
        "10.0.0.1:80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:080",
        "127.0.0.1:65536",
        "127.0.0.1:99999",
        "127.0.0.1:-1",
        "127.0.0.256:80",
        "127.0.0.999:80",
        "127.01.0.1:80",
        "127.0.0.1.5:80",
        "127.1:80",
        "127.0.0.1:80\n",
        " 127.0.0.1:80",
        "127.0.0.1:8٠",
        "٠127.0.0.1:80",
        "[::1]:80",
        "example.org:80",
        "a@127.0.0.1:80",
        f"{ONION}:0",
        f"{ONION}:65536",
        f"{ONION}:07411",
        f"{ONION}:7411\n",
        f"x.{ONION}:7411",
        f"{ONION}.example.org:7411",
        f"{ONION.upper()}:7411",
        f"{ONION[1:]}:7411",
        "a" * 56 + ".onion:7411",
        "facebookcorewwwi.onion:80",
        f"{'a' * 32}.memory:2",
        f"{'A' * 32}.memory:1",
        f"{'a' * 31}.memory:1",
        f"{'g' * 32}.memory:1",
        f"{'a' * 32}.memory:1\n",
    ],
)
def test_other_forms_are_refused_without_being_shown(text):
    with pytest.raises(DecodeError) as refused:
        parse_address(text)
    assert len(text) < 4 or text not in str(refused.value)


def test_long_texts_are_refused_at_once():
    with pytest.raises(DecodeError, match="too long"):
        parse_address("1" * (MAX_ADDRESS + 1))


@pytest.mark.slow
@properties(300)
@given(
    st.text(max_size=90)
    | st.from_regex(r"127\.[0-9.]{1,20}:[0-9]{1,6}")
    | st.from_regex(r"[a-z2-7]{56}\.onion:1")
)
def test_any_text_is_an_address_or_refused(text):
    try:
        address = parse_address(text)
    except DecodeError:
        return
    assert address == text
    host, port = split(address)
    assert f"{host}:{port}" == text
