"""SOCKS5 as tor speaks it, on streams isolated from each other (RFC 1928, RFC 1929, Tor proposal 304).

python-socks also offers tor to go without authentication, and isolation would go with it; and it hides the
extended errors. So this module offers user name and password as the only method, and reads all errors.
"""

from __future__ import annotations

import re
from enum import StrEnum

import trio

from hushcast_protocol.base.addresses import Address, is_onion, split
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint, open_endpoint

_VERSION = 5
_USER_AND_PASSWORD = 2
_NEGOTIATION = 1  # version of the exchange of user name and password
_CONNECT = 1
_DOMAIN_NAME = 3
_ISOLATION = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_BOUND_LENGTHS = {1: 4, 4: 16}  # bytes of the address in a reply, by its type


class UnreachableReason(StrEnum):
    """Why tor could not connect."""

    NOT_FOUND = "service not found"
    BAD_DESCRIPTOR = "service descriptor invalid"
    INTRODUCTION_FAILED = "introduction failed"
    RENDEZVOUS_FAILED = "rendezvous failed"
    UNAUTHORIZED = "service wants client authorization"
    BAD_ADDRESS = "address invalid"
    INTRODUCTION_TIMED_OUT = "introduction timed out"
    REFUSED = "service refused the connection"
    TIMED_OUT = "timed out"
    OTHER = "failed for another reason"


_KINDS = {
    0x05: UnreachableReason.REFUSED,
    0x06: UnreachableReason.TIMED_OUT,
    0xF0: UnreachableReason.NOT_FOUND,
    0xF1: UnreachableReason.BAD_DESCRIPTOR,
    0xF2: UnreachableReason.INTRODUCTION_FAILED,
    0xF3: UnreachableReason.RENDEZVOUS_FAILED,
    0xF4: UnreachableReason.UNAUTHORIZED,
    0xF5: UnreachableReason.UNAUTHORIZED,
    0xF6: UnreachableReason.BAD_ADDRESS,
    0xF7: UnreachableReason.INTRODUCTION_TIMED_OUT,
}


class UnreachableError(TransportError):
    """Tor answered that the service cannot be reached; `kind` says why."""

    def __init__(self, kind: UnreachableReason) -> None:
        super().__init__(f"tor could not connect: {kind}")
        self.kind = kind


def check_request(address: Address, isolation: str) -> None:
    """Raise `TransportError` for what is no onion address, `ValueError` for an isolation of another form."""
    if not is_onion(address):
        raise TransportError("only onion addresses are reached through Tor")
    if not _ISOLATION.match(isolation):
        raise ValueError("isolation is 1 to 64 characters of the URL-safe base64 alphabet")


async def open_stream(
    socks: Endpoint, address: Address, user: str, isolation: str, ahead: bytes = b""
) -> trio.SocketStream:
    """Return a stream to `address` by the SOCKS port `socks`; says and raises what `request` does."""
    stream = await open_endpoint(socks)
    try:
        await request(stream, address, user, isolation, ahead)
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return stream


async def offer(stream: trio.abc.Stream) -> None:
    """Offer user name and password as the only method; raise `TransportError` where that is not taken."""
    try:
        await stream.send_all(bytes([_VERSION, 1, _USER_AND_PASSWORD]))
        if await _read(stream, 2) != bytes([_VERSION, _USER_AND_PASSWORD]):
            raise TransportError("the SOCKS port does not isolate: it refuses user name and password")
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise TransportError("tor closed the SOCKS connection") from None


async def request(
    stream: trio.abc.Stream, address: Address, user: str, password: str, ahead: bytes = b""
) -> None:
    """Ask the SOCKS server behind `stream` for `address`; the stream then leads there.

    `ahead` goes with the request: tor sends it right behind its own, and does not wait until that is answered
    (Tor proposal 174, optimistic data), which is a round trip to the service.
    Streams share a circuit only if `user` and `password` (1 to 255 ASCII characters each) are both the same.
    Raises `UnreachableError` for what tor says, `TransportError` for the rest. The caller closes the stream.
    """
    if not is_onion(address):
        raise TransportError("only onion addresses are reached through Tor")
    if not (1 <= len(user) <= 255 and 1 <= len(password) <= 255):
        raise ValueError("user name and password have 1 to 255 characters")
    host, port = split(address)
    try:
        await offer(stream)
        await stream.send_all(bytes([_NEGOTIATION]) + _prefixed(user) + _prefixed(password))
        if (await _read(stream, 2))[1] != 0:
            raise TransportError("the SOCKS port refuses user name and password")
        target = _prefixed(host) + port.to_bytes(2, "big")
        await stream.send_all(bytes([_VERSION, _CONNECT, 0, _DOMAIN_NAME]) + target + ahead)
        await _read_reply(stream)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise TransportError("tor closed the SOCKS connection") from None


def _prefixed(text: str) -> bytes:
    return bytes([len(text)]) + text.encode("ascii")


async def _read_reply(stream: trio.abc.Stream) -> None:
    version, code, _, kind = await _read(stream, 4)
    if version != _VERSION:
        raise TransportError("the SOCKS port speaks another protocol")
    if code != 0:
        raise UnreachableError(_KINDS.get(code, UnreachableReason.OTHER))
    length = (await _read(stream, 1))[0] if kind == _DOMAIN_NAME else _BOUND_LENGTHS.get(kind)
    if length is None:
        raise TransportError("the SOCKS port speaks another protocol")
    await _read(stream, length + 2)


async def _read(stream: trio.abc.Stream, count: int) -> bytes:
    # Not a byte more than the reply: what follows it is the peer's.
    data = b""
    while len(data) < count:
        if not (piece := await stream.receive_some(count - len(data))):
            raise TransportError("tor closed the SOCKS connection")
        data += piece
    return data
