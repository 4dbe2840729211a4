"""The text of a link: `hushcast:`, then in URL-safe base64 what it holds and eight bytes of its hash."""

from __future__ import annotations

import base64
import binascii
import hmac

from hushcast_protocol.base.crypto.hashes import Domain, digest

MAX_LINK = 2048  # characters; the largest topic takes about 1,600
LINK_SCHEME = "hushcast:"
_CHECK = 8  # bytes


def write_packed(body: bytes) -> str:
    """Return what a link holds as its text, on one line."""
    packed = base64.urlsafe_b64encode(body + digest(Domain.LINK, body, size=_CHECK)).decode()
    return LINK_SCHEME + packed.rstrip("=")


def unpack(packed: str) -> bytes | None:
    """Return what a link's text encodes behind the scheme, in the one way it can, if its hash is right."""
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    body, check = data[:-_CHECK], data[-_CHECK:]
    is_whole = hmac.compare_digest(digest(Domain.LINK, body, size=_CHECK), check)
    return body if is_whole and base64.urlsafe_b64encode(data).decode().rstrip("=") == packed else None
