"""Authentication at a control port: SAFECOOKIE, or nothing where tor asks for nothing.

Plain COOKIE is left out: it hands the cookie to whoever holds the port, and every tor that offers it offers
SAFECOOKIE as well (control-spec section 3.24).
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from hushcast_runtime.tor.replies import convert, status
from hushcast_runtime.transports.base import TransportError

if TYPE_CHECKING:
    from stem.response import ControlMessage

    Ask = Callable[[str], Awaitable[ControlMessage]]

_COOKIE_LENGTH = 32  # bytes
_SERVER_KEY = b"Tor safe cookie authentication server-to-controller hash"
_CLIENT_KEY = b"Tor safe cookie authentication controller-to-server hash"


async def authenticate(ask: Ask, at_port: bool = False) -> None:
    """Authenticate a fresh control connection. Raises `TransportError` when that is not possible.

    A tor that asks for nothing `at_port` shows its onion services to every user of the machine: refused.
    """
    from stem.connection import AuthMethod

    offer = await ask("PROTOCOLINFO 1")
    convert("PROTOCOLINFO", offer)
    if AuthMethod.NONE in offer.auth_methods:
        if at_port:
            raise TransportError("tor's control port is open to all: set CookieAuthentication 1 in its torrc")
        proof = ""
    elif AuthMethod.SAFECOOKIE in offer.auth_methods and offer.cookie_path:
        proof = await _prove(ask, await _read_cookie(offer.cookie_path))
    else:
        raise TransportError("tor's control port offers no cookie: set CookieAuthentication 1 in its torrc")
    if status(await ask(f"AUTHENTICATE {proof}".rstrip())) != "250":
        raise TransportError("tor's control port refused our cookie")


async def _read_cookie(path: str) -> bytes:
    try:
        async with await trio.open_file(path, "rb", opener=_at_once) as file:
            cookie: bytes = await file.read(_COOKIE_LENGTH + 1) or b""
    except ValueError:
        raise TransportError("tor's control cookie is said to be where no file can be") from None
    except OSError as error:
        reason = f"tor's control cookie cannot be read ({error.strerror}): join its group"
        raise TransportError(reason) from None
    if len(cookie) != _COOKIE_LENGTH:
        raise TransportError("tor's control cookie has a wrong length")
    return cookie


def _at_once(path: str, flags: int) -> int:
    """Open what may be a pipe: whoever holds the port names it, and a thread that waits there never ends."""
    return os.open(path, flags | os.O_NONBLOCK)


async def _prove(ask: Ask, cookie: bytes) -> str:
    nonce = os.urandom(_COOKIE_LENGTH)
    reply = await ask(f"AUTHCHALLENGE SAFECOOKIE {nonce.hex()}")
    convert("AUTHCHALLENGE", reply)
    both = cookie + nonce + reply.server_nonce
    if not hmac.compare_digest(hmac.digest(_SERVER_KEY, both, "sha256"), reply.server_hash):
        raise TransportError("whoever holds tor's control port does not know its cookie")
    return hmac.digest(_CLIENT_KEY, both, "sha256").hex()
