"""Frames of the central system: what users and proxies, and proxies and the server, say over links.

A user stays unnamed, and a connection is for one pseudonym alone. It says requests one after the other, and
each is answered, in order. After `Attach` it hears deliveries, and says acknowledgements and signs of life.

A proxy opens a link to the server under its own name and keeps it. Over it go many users' requests at once,
each with a number, and deliveries by the number of the request that attached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.crypto.group import Point
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY, ProofOfWork
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, Lasting, Wire, decoder
from hushcast_protocol.central.introduction import MAX_SEALED
from hushcast_protocol.central.rerouting import MAX_INSIDE, WrappedMessage
from hushcast_protocol.content.messages import MAX_TOKENS

MAX_SUBSCRIBED = 64  # tokens in one request; a condition has 32 at most
MAX_CENTRAL_FRAME = MAX_INSIDE + 40 * MAX_TOKENS + 1024  # bytes

TokenPoints = Annotated[tuple[Point, ...], msgspec.Meta(min_length=1, max_length=MAX_TOKENS)]

CentralVerdict = Literal[
    "accepted",
    "form",  # it is not what the protocol allows
    "proof",  # it is not by who has the pseudonym
    "day",  # its day is not open
    "quota",  # there is no room, or too many came
    "stamp",  # a proxy under load wants work for it
    "unknown",  # nobody introduced this pseudonym here, or it was forgotten
    "taken",  # another proxy speaks for this pseudonym
    "closed",  # the server is not there
]


# A user to a proxy; `Subscribe`, `WithdrawTokens`, `Attach` and `Publish` go on to the server, their tokens
# and what is wrapped transformed.


class Introduce(Wire, frozen=True, tag="introduce"):
    """Make a pseudonym known (`introduction`); again for a known one, it changes nothing."""

    blinding: Bytes32
    sealed: Annotated[bytes, msgspec.Meta(max_length=MAX_SEALED)]
    stamp: ProofOfWork | None


class Subscribe(Wire, frozen=True, tag="central-subscribe"):
    """Route messages with any of these tokens to the pseudonym, too.

    Proven with the serial and the number of tokens. A serial is higher than those before; the same again is
    answered as before.
    """

    pseudonym: Bytes32
    serial: Counter
    tokens: Annotated[tuple[Point, ...], msgspec.Meta(min_length=1, max_length=MAX_SUBSCRIBED)]
    proof: Bytes16


class WithdrawTokens(Wire, frozen=True, tag="central-withdraw"):
    """Route messages with these tokens no more; without any, forget the pseudonym and what waits for it."""

    pseudonym: Bytes32
    serial: Counter
    tokens: Annotated[tuple[Point, ...], msgspec.Meta(max_length=MAX_SUBSCRIBED)]
    proof: Bytes16


class Attach(Wire, frozen=True, tag="attach"):
    """Deliver over this connection what waits and what comes; an earlier one gets no more."""

    pseudonym: Bytes32
    proof: Bytes16


class Publish(Wire, frozen=True, tag="central-publish"):
    """Take a message and match it by its tokens. Proven with the hash of the payload."""

    pseudonym: Bytes32
    tokens: TokenPoints
    wrapped: WrappedMessage
    proof: Bytes16


class AcknowledgeDeliveries(Wire, frozen=True, tag="acknowledge"):
    """All deliveries of this attachment up to this number (from 1) are durable; proven with their chain."""

    number: Counter
    proof: Bytes16


class Ping(Lasting, frozen=True, tag="central-ping"):
    """Show a sign of life, or see whether anybody is there, and what the network speaks.

    The one thing that a user says in a link of the wire `LASTING`, and every release answers it.
    """


# A proxy to a user.


class UserAnswer(Wire, frozen=True, tag="central-done"):
    """The answer to a request. The server's own carries a proof; a proxy's own is a refusal without one."""

    verdict: CentralVerdict
    proof: Bytes16 | None


class AttachAnswer(Wire, frozen=True, tag="attached"):
    """The answer to `Attach`: acknowledgements begin with this salt; those of other attachments fail."""

    salt: Bytes16


class Delivery(Wire, frozen=True, tag="delivery"):
    """A message for the pseudonym. Its number is its place in the attachment, from 1."""

    wrapped: WrappedMessage


class Pong(Lasting, frozen=True, tag="central-pong"):
    """The answer to a `Ping`: bits of the stamps that introductions need, and whether the server is there.

    Every release reads it: here a server and its proxies can tell what a later one has to know.
    """

    difficulty: Annotated[int, msgspec.Meta(ge=0, le=MAX_DIFFICULTY)]
    is_open: bool
    announced: Signed | None = None
    """The newest that the server announced of its network's wire (`WireAnnouncement`)."""


FromUser = Introduce | Subscribe | WithdrawTokens | Attach | Publish | AcknowledgeDeliveries | Ping
ToUser = UserAnswer | AttachAnswer | Delivery | Pong


# A proxy to the server.


class AskTransformationFactor(Wire, frozen=True, tag="ask-factor"):
    """A user's introduction, without the blinding."""

    sealed: Annotated[bytes, msgspec.Meta(max_length=MAX_SEALED)]


class ProxyRequest(Wire, frozen=True, tag="request"):
    """A request with a number that its answer repeats."""

    number: Counter
    what: AskTransformationFactor | Subscribe | WithdrawTokens | Attach | Publish


class DeliveriesAcknowledged(Wire, frozen=True, tag="acknowledged"):
    """A user's acknowledgement, of the attachment that this request began."""

    attachment: Counter
    number: Counter
    proof: Bytes16


class Detach(Wire, frozen=True, tag="detach"):
    """Either way: this attachment is over."""

    attachment: Counter


# The server to a proxy.


class TransformationFactor(Wire, frozen=True, tag="factor"):
    """s/(b·k) for a pseudonym, until its day is over."""

    pseudonym: Bytes32
    day: Counter
    factor: Bytes32


class ServerAnswer(Wire, frozen=True, tag="answer"):
    """The answer to a request."""

    number: Counter
    what: TransformationFactor | UserAnswer | AttachAnswer


class ServerDelivery(Wire, frozen=True, tag="deliver"):
    """A message under the server's key, for an attachment."""

    attachment: Counter
    wrapped: WrappedMessage


FromProxy = ProxyRequest | DeliveriesAcknowledged | Detach | Ping
FromServer = ServerAnswer | ServerDelivery | Detach | Pong

decode_from_user: Callable[[bytes], FromUser] = decoder(FromUser, "frame", MAX_CENTRAL_FRAME)
decode_to_user: Callable[[bytes], ToUser] = decoder(ToUser, "frame", MAX_CENTRAL_FRAME)
decode_sign_of_life: Callable[[bytes], Ping] = decoder(Ping, "frame", MAX_CENTRAL_FRAME)
decode_from_proxy: Callable[[bytes], FromProxy] = decoder(FromProxy, "frame", MAX_CENTRAL_FRAME)
decode_from_server: Callable[[bytes], FromServer] = decoder(FromServer, "frame", MAX_CENTRAL_FRAME)
