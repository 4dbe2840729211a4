"""Isolation by SOCKS user and password, checked before a tor's SOCKS port is used.

Unlinkability of publications and subscriptions by circuit depends on it, and a tor can be configured without
it (`NoIsolateSOCKSAuth`). So a port that is known not to isolate is not used.
"""

from __future__ import annotations

import re

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.logs import log
from hushcast_runtime.tor.control import ControlClient
from hushcast_runtime.tor.replies import status
from hushcast_runtime.transports.endpoints import Endpoint

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - where a listener of tor may be, never one of ours
_WITHOUT = "noisolatesocksauth"
_LISTENER = re.compile(r'"([^"]*)"|(\S+)')  # paths may hold spaces
_WORD = re.compile(r'(unix:)"([^"]*)"|(\S+)')


async def isolating_socks(control: ControlClient, wanted: Endpoint) -> Endpoint:
    """Return the SOCKS port `wanted` once it is known to be one that may be used.

    Raises `UsageError` if it is not a port of the tor behind `control` or does not isolate, `TransportError`
    when the connection is lost. Where tor keeps its configuration to itself it warns, and trusts `wanted`.
    """
    listeners = await _answers(control, "GETINFO net/listeners/socks", "net/listeners/socks=")
    options = await _answers(control, "GETCONF SocksPort", "SocksPort=")
    if listeners is None or options is None:
        log.warning("tor does not let us see whether its SOCKS port isolates")
        return wanted
    opened = [quoted or plain for quoted, plain in _LISTENER.findall(" ".join(listeners))]
    if not any(_is(listener, wanted) for listener in opened):
        raise UsageError("tor.socks is not a SOCKS port of the tor behind tor.control: name both of one tor")
    for option in options:
        port, *flags = _words(option) or [""]
        if _may_open(port, wanted) and _WITHOUT in (flag.lower() for flag in flags):
            raise UsageError(
                "tor's SOCKS port does not isolate: take NoIsolateSOCKSAuth out of its SocksPort line"
            )
    return wanted


def _words(option: str) -> list[str]:
    """Return the words of a SocksPort line; a path in quotes is one, `unix:` before it."""
    return [(unix + quoted) or plain for unix, quoted, plain in _WORD.findall(option)]


def _is(listener: str, wanted: Endpoint) -> bool:
    """Tell whether a listener of tor, `HOST:PORT` or `unix:/PATH`, answers at an endpoint."""
    listener = listener.strip('"')
    host, _, number = listener.rpartition(":")
    return listener == str(wanted) or (host == _EVERYWHERE and number == str(wanted.port))


def _may_open(port: str, wanted: Endpoint) -> bool:
    """Tell whether a SocksPort line (`9050`, `HOST:PORT`, `HOST:auto`, `unix:/PATH`) can mean an endpoint."""
    port = port.strip('"')
    return port == str(wanted) or port.rpartition(":")[2] in (str(wanted.port), "auto")


async def _answers(control: ControlClient, question: str, prefix: str) -> list[str] | None:
    """Return the values with a prefix in tor's answer; `None` if tor, or a filter before it, refuses."""
    reply = await control.ask(question)
    if status(reply) != "250":
        return None
    lines = [str(line) for _, _, line in reply.content()]
    return [line.removeprefix(prefix) for line in lines if line.startswith(prefix) and line != prefix]
