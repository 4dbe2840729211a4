"""Where a gateway listens: the settings of one listener, and what is wrong with them."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from hushcast_runtime.processes.config import PathText, Section
from hushcast_runtime.transports.local_sockets import MAX_PATH

MAX_LISTENERS = 16
MAX_ORIGINS = 64

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+\Z")
_SECURE = {"tls": "tcp", "wss": "ws", "https": "http"}
"""Kinds that are encrypted, and what they are without."""
_ENCRYPTED = {plain: secure for secure, plain in _SECURE.items()}
_OWN = {
    "address": ("tcp", "tls", "ws", "wss", "http", "https"),
    "port": ("tcp", "tls", "ws", "wss", "http", "https"),
    "path": ("unix", "http"),
    "certificate": tuple(_SECURE),
    "key": tuple(_SECURE),
    "client_ca": tuple(_SECURE),
    "origins": ("ws", "wss", "http", "https"),
    "push_user": ("http", "https"),
}


class ListenSection(Section, frozen=True, kw_only=True):
    """A place where clients connect."""

    kind: Literal["tcp", "tls", "unix", "ws", "wss", "http", "https"]
    """MQTT over `tcp`, `tls`, `unix`, or in WebSockets: `ws`, `wss`; or HTTP: `http`, `https`."""
    address: str | None = None
    """The address to listen at, `127.0.0.1` unless given; `0.0.0.0` or `::` for all of this machine."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """The port."""
    path: PathText | None = None
    """Of a Unix socket, for `unix`, and for `http` instead of a port."""
    certificate: PathText | None = None
    """The certificate of this gateway and those up to its authority, PEM."""
    key: PathText | None = None
    """Its private key, PEM, without a password."""
    client_ca: PathText | None = None
    """Certificates of the authorities, PEM, by one of which each client must have one, too."""
    origins: Annotated[tuple[str, ...], Meta(max_length=MAX_ORIGINS)] = ()
    """Web sites whose pages may connect, as `https://example.org`; none unless given."""
    push_user: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    """The user that pushes to topics `UP…` are of, by whoever knows their names; nobody's unless given."""

    @property
    def host(self) -> str:
        """The address that is listened at."""
        return self.address or "127.0.0.1"

    @property
    def is_secure(self) -> bool:
        """Whether connections are encrypted."""
        return self.kind in _SECURE

    @property
    def has_websockets(self) -> bool:
        """Whether MQTT comes in WebSockets."""
        return self.kind in ("ws", "wss")

    @property
    def speaks_http(self) -> bool:
        """Whether requests come, and no MQTT."""
        return self.kind in ("http", "https")

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return self.path is not None or _is_loopback(self.host)

    @property
    def name(self) -> str:
        """The place as people write it, for the one who runs the gateway."""
        if self.kind == "unix" or self.path is not None:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def title(self) -> str:
        """The kind and the place."""
        return self.name if self.kind == "unix" else f"{self.kind} {self.name}"

    def problem(self) -> str | None:
        """Return why this cannot be listened at, or must not; `None` if it may."""
        for key, kinds in _OWN.items():
            if getattr(self, key) not in (None, ()) and self.kind not in kinds:
                return f"`{key}` is for kind {' and '.join(kinds)}, not for {self.kind}: leave it out"
        if self.kind == "unix" or self.path is not None:
            return self._problem_of_path()
        if self.port is None:
            return "port: this is missing"
        if not _is_address(self.host):
            return (
                "address: give the address itself, such as 127.0.0.1 or ::1; a name may be another's tomorrow"
            )
        if self.is_secure and (self.certificate is None or self.key is None):
            return f"kind {self.kind} needs `certificate` and `key`, two files"
        if not self.is_secure and not self.is_local:
            return (
                f"other machines reach {self.host}, and kind {self.kind} shows all to whoever is on the way: "
                f"use {_ENCRYPTED[self.kind]} with a certificate, or listen at 127.0.0.1"
            )
        if any(not _ORIGIN.match(origin) for origin in self.origins):
            return (
                "origins: write a site as browsers do, in lower case and without a path: https://example.org"
            )
        return None

    def _problem_of_path(self) -> str | None:
        if self.path is None:
            return "path: this is missing"
        if self.port is not None or self.address is not None:
            return "path and port are two places: leave one of them out, and add a listener for it"
        if not Path(self.path).is_absolute():
            return "path: give an absolute one, so that it does not depend on where you start"
        if len(self.path.encode()) > MAX_PATH:
            return f"path: it has over {MAX_PATH} bytes, which Unix sockets cannot have"
        return None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_loopback(text: str) -> bool:
    return _is_address(text) and ipaddress.ip_address(text).is_loopback
