"""Endpoints of a tor on this machine: loopback TCP or a Unix socket, and nothing that leaves the machine."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.transports.base import TransportError

_UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A local address: a loopback `host` and `port`, or the `path` of a Unix socket (then `port` is 0)."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __post_init__(self) -> None:
        if self.path:
            if self.host or self.port or not self.path.startswith("/"):
                raise UsageError("a Unix endpoint of tor is an absolute path alone")
            if not self.path.isprintable() or '"' in self.path:  # it goes into lines said to tor
                raise UsageError("a Unix endpoint of tor is a path without quotes or control characters")
        elif not _is_loopback(self.host):
            raise UsageError("an endpoint of tor is neither loopback nor a Unix socket: use 127.0.0.1")
        elif not 1 <= self.port <= 65535:
            raise UsageError("an endpoint of tor has a port outside 1..65535")

    def __str__(self) -> str:
        return _UNIX + self.path if self.path else f"{self.host}:{self.port}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False  # names are refused as well: looking one up is a connection of its own


def parse_endpoint(text: str) -> Endpoint:
    """Return the endpoint written as `127.0.0.1:PORT` or `unix:/PATH`, quotes around it allowed.

    Raises `UsageError` for anything that is not loopback and not a Unix socket.
    """
    text = text.strip().strip('"')
    if text.startswith(_UNIX):
        return Endpoint(path=text.removeprefix(_UNIX).strip('"'))
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdecimal() or len(port) > 5:
        raise UsageError("an endpoint of tor is written 127.0.0.1:PORT or unix:/PATH")
    return Endpoint(host=host, port=int(port))


async def open_endpoint(endpoint: Endpoint) -> trio.SocketStream:
    """Connect to `endpoint`. Raises `TransportError` when nothing answers there or access is denied."""
    family = trio.socket.AF_UNIX if endpoint.path else trio.socket.AF_INET
    socket = trio.socket.socket(family, trio.socket.SOCK_STREAM)
    try:
        await socket.connect(endpoint.path or (endpoint.host, endpoint.port))
    except OSError as error:
        socket.close()
        reason = os.strerror(error.errno or 0)  # trio's own text has the address in it
        raise TransportError(f"tor does not answer at its endpoint ({reason})") from None
    except BaseException:
        socket.close()
        raise
    return trio.SocketStream(socket)
