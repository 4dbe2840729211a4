"""UnifiedPush: topics that whoever knows their name may publish to, and the push gateway of Matrix to them.

Sources: UnifiedPush, "server" and "gateway" specifications; Matrix, "Push Gateway API".
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import msgspec

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.http.http_request import segments
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.mqtt.wire.packets import Publish

MATRIX = "/_matrix/push/v1/notify"

_TOPIC = re.compile(r"[uU][pP][A-Za-z0-9_-]{12,62}\Z")  # 12 random characters are what ntfy's app draws
_encode = msgspec.json.Encoder().encode


def is_push_topic(topic: str) -> bool:
    """Tell whether a topic's name is one that an application server is told, and nobody guesses."""
    return _TOPIC.match(topic) is not None


class _Device(msgspec.Struct, frozen=True):
    pushkey: str


class _Devices(msgspec.Struct, frozen=True):
    devices: list[_Device]


class _Notified(msgspec.Struct, frozen=True):
    notification: _Devices


class PushkeyRejected(HttpRefusal):
    """A push key that is none of this gateway's: Matrix's server forgets it."""

    def __init__(self, pushkey: str) -> None:
        super().__init__(20000, "a push key of another place")
        self._pushkey = pushkey

    @property
    def body(self) -> bytes:
        """What Matrix expects."""
        return _encode({"rejected": [self._pushkey]}) + b"\n"


class MatrixNotification(msgspec.Struct, frozen=True):
    """What a server of Matrix has to say to one device, whose push key is the address of its topic."""

    host: str
    """The name by which this gateway was asked."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "MatrixNotification(...)"

    def with_body(self, body: bytes, randomness: Randomness) -> Publish:
        """Return the PUBLISH of the body as it is; raises `HttpRefusal`."""
        try:
            devices = msgspec.json.decode(body, type=_Notified).notification.devices
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            devices = []
        if len(devices) != 1:
            raise HttpRefusal(40019, "invalid request: no notification of Matrix for one device")
        pushkey = devices[0].pushkey
        try:
            url = urlsplit(pushkey)
            topic = "/".join(segments(url.path))
        except (ValueError, HttpRefusal):
            raise PushkeyRejected(pushkey) from None
        if url.netloc.lower() != self.host.lower() or not is_push_topic(topic):
            raise PushkeyRejected(pushkey)
        return Publish(topic, body, 1, packet_id=1)

    def receipt(self, packet: Publish, now: int, randomness: Randomness) -> bytes:
        """Return that nothing was rejected."""
        return b'{"rejected":[]}\n'
