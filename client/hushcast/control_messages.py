"""What is said over the control socket: JSON objects, one a line, declared once for both ends.

The first line of a connection is the application's `Hello`, which the daemon repeats. Then the application
sends requests, each with a number of its own in `request`, at most `MAX_REQUESTS` at once; every answer has
the number of its request. A request ends with one last line: an answer, or `FailureAnswer`.
`TopicSubscribeRequest` is answered with `SubscribeAnswer`, then with a line for each message, and ends with
`UnsubscribeAnswer` or `EndNotice`.
"""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import msgspec

from hushcast.device_messages import DeviceAnswer, DeviceRequest
from hushcast.message_bases import StrictMessage, StrictRequest, Told
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.findings import Finding as Finding
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD

VERSION = 2
"""Of what is said: 1 was one request a connection."""
OLDEST = 2
"""The oldest version that this program speaks besides."""

MAX_LINE = 2 * MAX_PAYLOAD  # bytes to the daemon; a payload in base64 takes four thirds of its size
MAX_ANSWER = 16 * MAX_PAYLOAD  # bytes to the application; in JSON a payload may take six times its size
MAX_REQUESTS = 512  # under way on one connection: all subscriptions of a daemon, and as many publications
MAX_WINDOW = 1024  # messages that an application may let come before it has shown any
MAX_TOKEN = 64  # bytes; 16 random ones do

Cursor = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A message's place in the inbox of one subscription, from 1; 0 is before all."""
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_WINDOW)]
Token = Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_TOKEN)]


class Hello(msgspec.Struct, frozen=True, tag_field="op", tag="hello"):
    """The first line from either end; what else a later version says in it is passed over.

    An application says the newest and the oldest version that it speaks; a daemon the one that both use.
    """

    version: int = VERSION
    oldest: int | msgspec.UnsetType = OLDEST if OLDEST < VERSION else msgspec.UNSET
    """Where it is not said, that version alone."""

    def chosen(self) -> int | None:
        """Return the newest version that this program and who says this speak; `None`: there is none."""
        newest, oldest = min(self.version, VERSION), self.oldest
        least = self.version if oldest is msgspec.UNSET else oldest
        return newest if newest >= max(least, OLDEST) else None


class PublishRequest(StrictRequest, frozen=True, tag_field="op", tag="publish", omit_defaults=True):
    """Publish `payload` (base64) on a topic, a text, a link, or a subscription's handle.

    `set` holds attributes as `NAME=VALUE`; `author` the seed (base64, 32 bytes) of a key that signs it.
    `tell` says when to answer: when a relay has `accepted` it, or when it is `queued` in the outbox; with
    `at_once` this is refused while there is no relay. A text that names a subscription's topic which
    only a link can name is refused, for it would go out on an open topic: with `open` that one is meant.
    With `next_round` a daemon under cover does not hold it.
    """

    topic: str
    payload: bytes
    set: list[str] = msgspec.field(default_factory=list)
    author: bytes | None = None
    tell: Literal["accepted", "queued"] = "accepted"
    at_once: bool = False
    token: Token | None = None
    """By which the daemon knows a publication that it is asked for again after a connection broke."""
    tags: list[str] | msgspec.UnsetType = msgspec.UNSET
    """By which relays find subscriptions to `tags [...]`; left out where there are none."""
    open: bool = False
    next_round: bool = False


class AwaitRequest(StrictRequest, frozen=True, tag_field="op", tag="await"):
    """Answer when a relay has given its receipt for the publication with this token."""

    token: Token


class OutboxRequest(StrictRequest, frozen=True, tag_field="op", tag="outbox"):
    """List the publications that wait for a relay's receipt, and those that were given up."""


class CancelRequest(StrictRequest, frozen=True, tag_field="op", tag="cancel"):
    """Remove the publication with this id (64 hexadecimal digits) from the outbox."""

    id: str


class Terms(StrictMessage, frozen=True, omit_defaults=True):
    """How many subscribers topic and condition are to hide among before a network of brokers sees them."""

    k: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    """So many are enough; 1 asks for nothing."""
    condition: Literal[
        "source",
        "immediate-successor",
        "successor",
        "immediate-predecessor-successor",
        "immediate-predecessor",
    ] = "source"
    """Whom the level counts, as in docs/brokers.md."""
    otherwise: Literal["refuse", "wait", "generalise", "bogus"] = "refuse"
    """What is done while the level is below `k`."""


class TopicSubscribeRequest(StrictRequest, frozen=True, tag_field="op", tag="subscribe", omit_defaults=True):
    """Subscribe to a topic, a text or a link; its messages come until `EndNotice` or the connection's end.

    A handle stands for the topic and the condition of a subscription that is held. `open` is as in
    `PublishRequest`.

    `where` is a condition on attributes, as in `lat in [60, 61], kind = fire`. With `since` it begins behind
    that cursor, with all that is kept; without, behind what was shown. With `window` the daemon sends so many
    messages, then as many as `ShownNotice` allows; without, as they come. With `coverage` it tells of
    changes. With `past` (Unix seconds) also what was published from that day on comes, where the network
    keeps it; else this is refused. Without `terms` those of a subscription that is held will do; others than
    it has are refused.
    """

    topic: str
    where: str = ""
    since: Cursor | None = None
    window: Count | None = None
    coverage: bool = False
    terms: Terms | None = None
    open: bool = False
    once: bool = False
    """Leave out what was shown or acknowledged on any device of the person, as far as that is known."""
    past: Annotated[float, msgspec.Meta(ge=0)] | None = None


class AcknowledgeRequest(StrictRequest, frozen=True, tag_field="op", tag="acknowledge"):
    """Acknowledge all messages up to `cursor`, of one subscription to a topic or, without `where`, of all.

    Here, in `TopicUnsubscribeRequest` and in `CoverageRequest` a handle stands for its topic and condition.
    """

    topic: str
    cursor: Cursor
    where: str | None = None


class TopicUnsubscribeRequest(StrictRequest, frozen=True, tag_field="op", tag="unsubscribe"):
    """End the subscription to a topic with this condition, or, without one, all to the topic."""

    topic: str
    where: str | None = None


class SubscriptionsRequest(StrictRequest, frozen=True, tag_field="op", tag="subscriptions"):
    """List the subscriptions."""


class StatusRequest(StrictRequest, frozen=True, tag_field="op", tag="status"):
    """Describe the daemon."""


class DoctorRequest(StrictRequest, frozen=True, tag_field="op", tag="examine"):
    """Look for what keeps the daemon from working."""


class ShownNotice(StrictRequest, frozen=True, tag_field="op", tag="shown"):
    """The application has shown all messages up to `shown`, and needs none up to `acknowledged` any more.

    `request` is the `subscribe` that brought them; `more` may be sent. Nothing answers it.
    """

    shown: Cursor = 0
    acknowledged: Cursor = 0
    more: Count = 0


class EndNotice(StrictRequest, frozen=True, tag_field="op", tag="end"):
    """Hear no more of `request`: the subscription stays in the daemon, the publication in the outbox."""


class CoverageRequest(StrictRequest, frozen=True, tag_field="op", tag="coverage"):
    """Tell what probes say of the subscriptions to a topic, or of the one with this condition.

    With `losses` the answer has `{"losses": {relay: [lost, passed]}}` for each, too: of the copies of probes
    that a relay had, how many it lost and how many it passed on, as far as is known.
    """

    topic: str
    where: str | None = None
    losses: bool = False


Request = (
    PublishRequest
    | AwaitRequest
    | OutboxRequest
    | CancelRequest
    | TopicSubscribeRequest
    | AcknowledgeRequest
    | TopicUnsubscribeRequest
    | SubscriptionsRequest
    | CoverageRequest
    | StatusRequest
    | DoctorRequest
    | DeviceRequest
)
"""What the daemon answers."""

ApplicationMessage = Request | ShownNotice | EndNotice
"""What an application says after `Hello`."""


class PublishAnswer(Told, frozen=True, tag_field="event", tag="published"):
    """A relay has taken the message over (`accepted`), or it is durable in the outbox (`queued`)."""

    id: str
    topic: str
    receipt: Literal["accepted", "queued"] = "accepted"
    outlook: str | msgspec.UnsetType = msgspec.UNSET
    """Under cover, for people: when it goes, and when its receipt may be there; nobody waits for that."""


class OutboxAnswer(Told, frozen=True, tag_field="event", tag="outbox"):
    """The outbox: `{"id", "topic", "since", "state", "receipts", "attempts", …}` each."""

    publications: list[dict[str, Any]]


class CancelAnswer(Told, frozen=True, tag_field="event", tag="cancelled"):
    """The publication will not be dropped any more."""

    id: str
    topic: str


class SubscribeAnswer(Told, frozen=True, tag_field="event", tag="subscribed", omit_defaults=True):
    """Messages on the topic reach the daemon; so many relays, or what `by` names, route to it."""

    topic: str
    nodes: int
    by: str = "relay"
    outlook: str | None = None
    """For people, under cover or without trees: when messages come, and under cover what shows who reads."""


class MessageNotice(Told, frozen=True, tag_field="event", tag="message", omit_defaults=True):
    """A message; `cursor` is its place in the inbox. Attributes and an author are there if it has some.

    `past_day` (Unix seconds) is there if it was published before the day of the subscription: when its began.
    """

    topic: str
    id: str
    payload: str
    encoding: Literal["utf-8", "base64"]
    received_at: float
    cursor: int
    attributes: dict[str, str | int | float] | None = None
    author: str | None = None
    past_day: float | None = None


class LossNotice(Told, frozen=True, tag_field="event", tag="lost"):
    """Messages up to `cursor` were removed before the application got them: `count`, if anybody knows."""

    topic: str
    count: int | None
    cursor: int


class GapNotice(Told, frozen=True, tag_field="event", tag="gap"):
    """A message that another subscriber of the topic received, and this one did not."""

    topic: str
    id: str


class CoverageAnswer(Told, frozen=True, tag_field="event", tag="coverage"):
    """Coverage, `{"topic", "where", "probes", "share", "low", "high", "suspects"}` for each subscription."""

    subscriptions: list[dict[str, Any]]


class AcknowledgeAnswer(Told, frozen=True, tag_field="event", tag="acknowledged"):
    """No message up to `cursor` is shown again."""

    topic: str
    cursor: int


class UnsubscribeAnswer(Told, frozen=True, tag_field="event", tag="unsubscribed"):
    """The subscription is over; `existed` tells whether there was one."""

    topic: str
    existed: bool


class EndAnswer(Told, frozen=True, tag_field="event", tag="ended"):
    """The application hears no more of this request, as it asked."""


class SubscriptionsAnswer(Told, frozen=True, tag_field="event", tag="subscriptions"):
    """The subscriptions, `{"handle", "topic", "nodes", "ready", "since", "cursor", …}` each."""

    subscriptions: list[dict[str, Any]]


class StatusAnswer(Told, frozen=True, tag_field="event", tag="status"):
    """The daemon's state."""

    status: dict[str, Any]


class DoctorAnswer(Told, frozen=True, tag_field="event", tag="examined"):
    """What was found."""

    findings: list[Finding]


FailureKind = Literal["usage", "refused", "waiting", "starting", "cursor"]


class FailureAnswer(Told, frozen=True, tag_field="event", tag="failed"):
    """The request was not carried out: its words were wrong, daemon or network declined, or it waits.

    What is `waiting` is a publication that stays in the outbox without a receipt so far. A daemon that is
    `starting` may be asked again; `cursor` is refused because no message of the subscription had it yet.
    """

    kind: FailureKind
    reason: str


Answer = (
    PublishAnswer
    | OutboxAnswer
    | CancelAnswer
    | SubscribeAnswer
    | MessageNotice
    | LossNotice
    | GapNotice
    | CoverageAnswer
    | AcknowledgeAnswer
    | UnsubscribeAnswer
    | EndAnswer
    | SubscriptionsAnswer
    | StatusAnswer
    | DoctorAnswer
    | DeviceAnswer
    | FailureAnswer
)

encode_line = msgspec.json.Encoder().encode
_decode_hello = msgspec.json.Decoder(Hello).decode
_decode_said = msgspec.json.Decoder(ApplicationMessage).decode
_decode_answer = msgspec.json.Decoder(Answer).decode
_decode_told = msgspec.json.Decoder(Told).decode


def decode_hello(line: bytes) -> Hello:
    """Decode the first line of a connection; raise `DecodeError`."""
    return _checked(_decode_hello, line)  # type: ignore[no-any-return]


def decode_application_message(line: bytes) -> ApplicationMessage:
    """Decode a later line of an application; raise `DecodeError` that says what is wrong."""
    return _checked(_decode_said, line)  # type: ignore[no-any-return]


def decode_answer(line: bytes) -> Answer:
    """Decode a daemon's answer; raise `DecodeError`."""
    return _checked(_decode_answer, line)  # type: ignore[no-any-return]


def request_of(line: bytes) -> int:
    """Return which request an answer is to that does not decode, 0 for none; raise `DecodeError`."""
    return int(_checked(_decode_told, line).request)


def _checked(decode: Any, line: bytes) -> Any:
    try:
        return decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DecodeError(f"a line does not decode: {error}") from None


def as_text(payload: bytes) -> tuple[str, Literal["utf-8", "base64"]]:
    """Return a payload as JSON can carry it, and how it is encoded."""
    try:
        return payload.decode(), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(payload).decode(), "base64"
