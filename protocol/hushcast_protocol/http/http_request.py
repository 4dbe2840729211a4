"""A request: its path, its parameters from headers or the query, and who makes it."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Iterable
from email.errors import HeaderParseError
from email.header import decode_header
from functools import partial
from urllib.parse import parse_qsl, unquote

import msgspec

from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.mqtt.topics.topic_filters import has_control

MAX_PARAMETERS = 64  # fields of a query: all that ntfy has, with every alias, are some 50

_BROWSERS_PRIORITY = re.compile(r"\s*(u=\d\b.*|i\s*(,.*)?)\Z")  # RFC 9218: of the request, not of a message


class HttpCredentials(msgspec.Struct, frozen=True):
    """Who says to be whom: a name and a password; an empty name comes with a token."""

    name: str
    password: bytes

    def __repr__(self) -> str:
        """Show neither."""
        return "HttpCredentials(...)"


class HttpRequest(msgspec.Struct, frozen=True):
    """What came before the body: names of headers are in lower case, values as bytes."""

    method: str
    target: str
    """Path and query as they were sent."""
    headers: tuple[tuple[str, bytes], ...] = ()

    def __repr__(self) -> str:
        """Show neither topic nor credentials."""
        return f"HttpRequest({self.method})"

    @property
    def path(self) -> str:
        """The path, with what is written in percents as it is."""
        return self.target.partition("?")[0]

    def header(self, name: str) -> str:
        """Return the one header of a name, empty without; raises `HttpRefusal` for a second one."""
        found = [value for each, value in self.headers if each == name]
        if len(found) > 1:
            raise HttpRefusal(40000, f"invalid request: {name} is there twice")
        return text_of(found[0]).strip() if found else ""

    def parameters(self) -> Parameters:
        """Return what the query and the headers say; raises `HttpRefusal`."""
        try:
            pairs = parse_qsl(
                self.target.partition("?")[2],
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MAX_PARAMETERS,
            )
        except ValueError:
            raise HttpRefusal(40000, "invalid request: the query cannot be read") from None
        query: dict[str, str] = {}
        for name, given in pairs:
            query.setdefault(name.lower(), given)
        headers: dict[str, bytes] = {}
        for each, value in self.headers:
            headers.setdefault(each, value)
        return Parameters(query, headers)

    def credentials(self) -> HttpCredentials | None:
        """Return who makes the request, by `Authorization` or ntfy's query parameter `auth`.

        `None` where it does not say. Raises `HttpRefusal` for what cannot be read.
        """
        given = self.header("authorization")
        if not given:
            written = self.parameters().query.get("auth", "")
            if not written:
                return None
            given = text_of(_decoded(written))
        scheme, _, rest = given.partition(" ")
        rest = rest.strip()
        if scheme.lower() == "bearer" and rest:
            return HttpCredentials("", rest.encode())
        if scheme.lower() != "basic":
            raise UNREADABLE()
        name, colon, password = _decoded(rest).partition(b":")
        try:
            user = name.decode()
        except UnicodeDecodeError:
            raise UNREADABLE() from None
        if not colon or has_control(user):
            raise UNREADABLE()
        return HttpCredentials(user, password)


UNREADABLE = partial(
    HttpRefusal, 40101, "unauthorized: give a user and a password (Basic), or a token (Bearer)"
)


class Parameters:
    """Parameters by ntfy's names and aliases: a header counts before the query."""

    def __init__(self, query: dict[str, str], headers: dict[str, bytes]) -> None:
        self.query = query
        self._headers = headers

    def get(self, names: Iterable[str]) -> str:
        """Return the first that is there, empty without; `names` are in lower case."""
        for name in names:
            value = self._headers.get(name)
            if value is not None and not (name == "priority" and _BROWSERS_PRIORITY.match(text_of(value))):
                return decoded_words(text_of(value)).strip()
        return next((self.query[name].strip() for name in names if name in self.query), "")

    def flag(self, names: Iterable[str]) -> bool:
        """Tell whether one that is on or off is on."""
        return self.get(names).lower() in ("1", "yes", "true")


def text_of(value: bytes) -> str:
    """Return a header's value: UTF-8, or the Latin-1 that HTTP once had."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def decoded_words(text: str) -> str:
    """Return a header's value with encoded words (RFC 2047) as what they mean."""
    if "=?" not in text:
        return text
    try:
        parts = [
            part if isinstance(part, str) else part.decode(charset or "latin-1")
            for part, charset in decode_header(text)
        ]
        found = "".join(parts)
        found.encode()  # some charsets make halves of characters, which nothing can be written with
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return text
    return found


def segments(path: str) -> list[str]:
    """Return the parts of a path between slashes, decoded; raises `HttpRefusal`."""
    try:
        return [unquote(part, errors="strict") for part in path.removeprefix("/").split("/")]
    except UnicodeDecodeError:
        raise HttpRefusal(40009, "invalid topic: not UTF-8") from None


def _decoded(written: str) -> bytes:
    """Decode base64 in either alphabet, with or without its padding."""
    padded = written + "=" * (-len(written) % 4)
    try:
        return urlsafe_b64decode(padded) if set("-_") & set(written) else b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise UNREADABLE() from None
