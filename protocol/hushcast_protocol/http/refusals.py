"""Refusals: why a request comes to nothing, as status and as ntfy's JSON error (its server/errors.go)."""

from __future__ import annotations

from functools import partial

import msgspec

from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.wire.properties import MAX_PROPERTIES

_encode = msgspec.json.Encoder().encode


class HttpRefusal(PeerError):
    """A request that is not granted. `code` is ntfy's: the status, and two digits that say more."""

    def __init__(self, code: int, what: str) -> None:
        """`what` is told to the client; it holds nothing of anybody else's."""
        super().__init__(what)
        self.code = code
        self.what = what

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code // 100

    @property
    def body(self) -> bytes:
        """The JSON that clients of ntfy read."""
        return _encode({"code": self.code, "http": self.status, "error": self.what}) + b"\n"


_OF_REASON = {
    Reason.BAD_USER_NAME_OR_PASSWORD: (40101, "unauthorized: no such user, or another password"),
    Reason.NOT_AUTHORIZED: (40301, "forbidden: this user's lists do not allow it"),
    Reason.TOPIC_NAME_INVALID: (40009, "invalid topic: too deep, too long, or not one of this gateway"),
    Reason.TOPIC_FILTER_INVALID: (40009, "invalid topic: too deep, too long, or not one of this gateway"),
    Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: (40009, "invalid topic: no wildcards in an open topic"),
    Reason.MALFORMED_PACKET: (40000, "invalid request: a field has characters that it cannot have"),
    Reason.PROTOCOL_ERROR: (40000, "invalid request"),
    Reason.PAYLOAD_FORMAT_INVALID: (40011, "invalid request: the message is not UTF-8"),
    Reason.IMPLEMENTATION_SPECIFIC_ERROR: (
        41301,
        "the message, or what is said of it, is too large to travel",
    ),
    Reason.PACKET_TOO_LARGE: (41301, "the message is larger than this gateway takes"),
    Reason.KEEP_ALIVE_TIMEOUT: (40801, "the message did not come in time"),
    Reason.QUOTA_EXCEEDED: (42901, "as much as this user may have is there already: try again later"),
    Reason.RECEIVE_MAXIMUM_EXCEEDED: (42901, "too many messages at once: try again later"),
}
TOO_MUCH = partial(
    HttpRefusal, 40000, f"invalid request: title, tags and all else have over {MAX_PROPERTIES} bytes"
)
_NOT_NOW = (50301, "the gateway is busy or stops: try again later")


def refusal_of(reason: int) -> HttpRefusal:
    """Return what a failure of MQTT is in HTTP; one that no client caused is "try again later"."""
    return HttpRefusal(*_OF_REASON.get(Reason(reason) if reason in _REASONS else Reason.SUCCESS, _NOT_NOW))


_REASONS = frozenset(int(one) for one in Reason)
