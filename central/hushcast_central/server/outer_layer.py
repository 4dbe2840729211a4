"""The outer layer: what the server does to the outer layer of messages, as the profile says."""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.base.crypto.group import Scalar, base, check_point
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.central.inner_message import message_inside
from hushcast_protocol.central.profile import CentralProfile
from hushcast_protocol.central.rerouting import MAX_INSIDE, WrappedMessage, rerandomised, unwrap, wrap
from hushcast_protocol.content.bodies import open_body
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, check_message
from hushcast_protocol.content.tokens import OPEN_KEY

_NO_TOKENS = (bytes(16),)  # a message has one at least
_decode_wrapped: Callable[[bytes], WrappedMessage] = decoder(
    WrappedMessage, "wrapped message", 2 * MAX_INSIDE
)


class OuterLayer:
    """The outer layer under one server's key.

    Hardened, publications are opened, and each delivery is sealed anew. As published they are kept as they
    came, with the hash of the payload for an id, and only re-randomised.
    """

    def __init__(self, key: Scalar, profile: CentralProfile, randomness: Randomness) -> None:
        self._key = key
        self._public = base(key)
        self.profile = profile
        self._randomness = randomness

    def opened(self, wrapped: WrappedMessage, day: int) -> Message:
        """Return a publication as it is kept; `day` is the publisher's. Raises a `PeerError`."""
        if self.profile.wraps_anew:
            return self._inside(wrapped)
        check_point(wrapped.mask)
        check_point(wrapped.masked)
        name = digest(Domain.MESSAGE, wrapped.payload)
        return Message(name, day, _NO_TOKENS, bytes(TRAIL_SIZE), encode(wrapped))

    def check(self, message: Message) -> None:
        """Raise a `PeerError` unless a message is as one that was kept."""
        if self.profile.wraps_anew:
            check_message(message)
        elif digest(Domain.MESSAGE, _decode_wrapped(message.body).payload) != message.id:
            raise AuthenticationError("a message's id is not the hash of what is wrapped")

    def delivery(self, message: Message) -> WrappedMessage:
        """Seal what is kept for one subscriber; no two deliveries are alike."""
        if self.profile.wraps_anew:
            return wrap(self._key, encode(message), self._randomness)
        return rerandomised(self._public, _decode_wrapped(message.body), self._randomness)

    def seen_inside(self, wrapped: WrappedMessage) -> tuple[bytes | None, bool]:
        """Return the id inside, and whether the body opens with what everybody knows, for traces.

        The server can have both, whether or not its profile has it open anything.
        """
        try:
            message = self._inside(wrapped)
        except PeerError:
            return None, False
        try:
            open_body(OPEN_KEY, message)
        except PeerError:
            return message.id, False
        return message.id, True

    def _inside(self, wrapped: WrappedMessage) -> Message:
        message = message_inside(unwrap(self._key, wrapped))
        if message.trail != bytes(TRAIL_SIZE):
            raise DecodeError("a message is published with a trail that is not empty")
        return message
