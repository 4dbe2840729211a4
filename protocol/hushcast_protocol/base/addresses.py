"""Addresses: where a relay or directory is reached, and whether that could leak outside Tor.

Three forms: `<56 characters>.onion:PORT`, `127.x.y.z:PORT` and `<32 hex>.memory:1`. An onion address encodes
its service's Ed25519 key (Tor rend-spec v3, "Encoding onion addresses").
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from typing import NewType

from hushcast_protocol.base.errors import DecodeError

Address = NewType("Address", str)
"""A checked address; shown only to whoever typed it, never logged."""

MAX_ADDRESS = 80  # characters; the longest form, an onion address with its port, has 68
ONION_PORT = 7411  # the one virtual port of every onion service of ours, so that ports tell nothing

_ONION = re.compile(r"([a-z2-7]{56})\.onion:([0-9]{1,5})\Z")
_LOOPBACK = re.compile(r"(127(?:\.[0-9]{1,3}){3}):([0-9]{1,5})\Z")
_MEMORY = re.compile(r"[0-9a-f]{32}\.memory:1\Z")
_ONION_VERSION = b"\x03"


def _checksum(public: bytes) -> bytes:
    return hashlib.sha3_256(b".onion checksum" + public + _ONION_VERSION).digest()[:2]


def onion_address(public: bytes) -> Address:
    """Return the onion address of the service whose Ed25519 public key (32 bytes) is `public`."""
    name = base64.b32encode(public + _checksum(public) + _ONION_VERSION).decode().lower()
    return Address(f"{name}.onion:{ONION_PORT}")


def memory_address(public: bytes) -> Address:
    """Return the address on the `memory` transport of the service with this public key."""
    return Address(f"{public[:16].hex()}.memory:1")


def parse_address(text: str) -> Address:
    """Return `text` as an `Address`; raise `DecodeError` (without the text) if it has none of the forms."""
    if len(text) > MAX_ADDRESS:
        raise DecodeError("an address is too long")
    if match := _ONION.match(text):
        packed = base64.b32decode(match[1].upper())
        if packed[34:] != _ONION_VERSION or packed[32:34] != _checksum(packed[:32]):
            raise DecodeError("an onion address has a wrong checksum or version")
        _check_port(match[2])
    elif match := _LOOPBACK.match(text):
        try:
            ipaddress.IPv4Address(match[1])
        except ValueError:
            raise DecodeError("a loopback address has a part above 255") from None
        _check_port(match[2])
    elif not _MEMORY.match(text):
        raise DecodeError("an address is neither an onion, a loopback nor a memory address")
    return Address(text)


def _check_port(port: str) -> None:
    if not 1 <= int(port) <= 65535 or port.startswith("0"):
        raise DecodeError("an address has a port outside 1..65535")


def is_onion(address: Address) -> bool:
    """Tell whether reaching `address` stays inside Tor."""
    return _ONION.match(address) is not None


def split(address: Address) -> tuple[str, int]:
    """Return host and port."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def service_of(address: Address | str) -> str:
    """Return what whoever listens at a checked address has one of, however many addresses that makes.

    An onion service has 65,535 ports for nothing, so it is one. A loopback address names a process of a test
    network by its port, all of them on one host.
    """
    return split(Address(address))[0] if is_onion(Address(address)) else address


def is_of_key(address: Address, public: bytes) -> bool:
    """Tell whether `address` can belong to the Ed25519 key `public`.

    Onion and memory addresses are made of the key; a loopback address is not, and any key may claim it.
    """
    if is_onion(address):
        return split(address)[0] == split(onion_address(public))[0]
    if _MEMORY.match(address):
        return address == memory_address(public)
    return True
