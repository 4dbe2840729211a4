"""What is said over the control socket: JSON objects, one a line, declared once for both ends.

A connection carries one request. The daemon answers with one `…Done` or `Failed` line; a `subscribe` is
answered with `Subscribed` and then a `Delivered` line for each message, and hears `Shown` lines meanwhile; a
`publish` that wants to be told of each step is answered twice.
"""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.content.messages import MAX_PAYLOAD

MAX_LINE = 2 * MAX_PAYLOAD  # bytes; a payload in base64 takes four thirds of its size


Cursor = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A message's place in the inbox of one subscription, from 1; 0 is before all."""


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Publish(_Line, frozen=True, tag_field="op", tag="publish"):
    """Publish `payload` (base64) on a topic, a text or a link.

    `set` holds attributes as `NAME=VALUE`; `author` the seed (base64, 32 bytes) of a key that signs it.
    `tell` says when to answer: when it is `accepted`, when it is `queued` in the outbox, or at `each`.
    """

    topic: str
    payload: bytes
    set: list[str] = []
    author: bytes | None = None
    tell: Literal["accepted", "queued", "each"] = "accepted"


class Outbox(_Line, frozen=True, tag_field="op", tag="outbox"):
    """List the publications that wait for a relay's receipt, and those that were given up."""


class Cancel(_Line, frozen=True, tag_field="op", tag="cancel"):
    """Remove the publication with this id (64 hexadecimal digits) from the outbox."""

    id: str


class Subscribe(_Line, frozen=True, tag_field="op", tag="subscribe"):
    """Subscribe to a topic, a text or a link, and hear its messages until the connection closes.

    `where` is a condition on attributes, as in `lat in [60, 61], kind = fire`. With `since` it begins behind
    that cursor, with all that is kept; without, behind what was shown.
    """

    topic: str
    where: str = ""
    since: Cursor | None = None


class Acknowledge(_Line, frozen=True, tag_field="op", tag="acknowledge"):
    """Acknowledge all messages up to `cursor`, of one subscription to a topic or, without `where`, of all."""

    topic: str
    cursor: Cursor
    where: str | None = None


class Unsubscribe(_Line, frozen=True, tag_field="op", tag="unsubscribe"):
    """End the subscription to a topic with this condition, or, without one, all to the topic."""

    topic: str
    where: str | None = None


class Subscriptions(_Line, frozen=True, tag_field="op", tag="subscriptions"):
    """List the subscriptions."""


class Status(_Line, frozen=True, tag_field="op", tag="status"):
    """Describe the daemon."""


class Examine(_Line, frozen=True, tag_field="op", tag="examine"):
    """Look for what keeps the daemon from working."""


class Shown(_Line, frozen=True, tag_field="op", tag="shown"):
    """The application has shown all messages up to `cursor`, and, if `acknowledged`, needs them no more."""

    cursor: Cursor
    acknowledged: bool = False


class Coverage(_Line, frozen=True, tag_field="op", tag="coverage"):
    """Tell what probes say of the subscriptions to a topic, or of the one with this condition."""

    topic: str
    where: str | None = None


Request = (
    Publish
    | Outbox
    | Cancel
    | Subscribe
    | Acknowledge
    | Unsubscribe
    | Subscriptions
    | Coverage
    | Status
    | Examine
)


class Published(_Line, frozen=True, tag_field="event", tag="published"):
    """A relay has taken the message over (`accepted`), or it is durable in the outbox (`queued`)."""

    id: str
    topic: str
    receipt: Literal["accepted", "queued"] = "accepted"


class OutboxList(_Line, frozen=True, tag_field="event", tag="outbox"):
    """The outbox: `{"id", "topic", "since", "state", "receipts", "attempts", …}` each."""

    publications: list[dict[str, Any]]


class Cancelled(_Line, frozen=True, tag_field="event", tag="cancelled"):
    """The publication will not be dropped any more."""

    id: str
    topic: str


class Subscribed(_Line, frozen=True, tag_field="event", tag="subscribed"):
    """Messages on the topic reach the daemon; so many relays route to it."""

    topic: str
    nodes: int


class Delivered(_Line, frozen=True, tag_field="event", tag="message", omit_defaults=True):
    """A message; `cursor` is its place in the inbox. Attributes and an author are there if it has some."""

    topic: str
    id: str
    payload: str
    encoding: Literal["utf-8", "base64"]
    received_at: float
    cursor: int
    attributes: dict[str, str | int | float] | None = None
    author: str | None = None


class Lost(_Line, frozen=True, tag_field="event", tag="lost"):
    """Messages, `count` of them up to `cursor`, were removed before the application got them."""

    topic: str
    count: int
    cursor: int


class Missed(_Line, frozen=True, tag_field="event", tag="gap"):
    """A message that another subscriber of the topic received, and this one did not."""

    topic: str
    id: str


class Covered(_Line, frozen=True, tag_field="event", tag="coverage"):
    """Coverage, `{"topic", "where", "probes", "share", "low", "high", "suspects"}` for each subscription."""

    subscriptions: list[dict[str, Any]]


class Acknowledged(_Line, frozen=True, tag_field="event", tag="acknowledged"):
    """No message up to `cursor` is shown again."""

    topic: str
    cursor: int


class Unsubscribed(_Line, frozen=True, tag_field="event", tag="unsubscribed"):
    """The subscription is over; `existed` tells whether there was one."""

    topic: str
    existed: bool


class SubscriptionList(_Line, frozen=True, tag_field="event", tag="subscriptions"):
    """The subscriptions, `{"topic", "nodes", "ready", "since", "cursor", "acknowledged", …}` each."""

    subscriptions: list[dict[str, Any]]


class StatusReport(_Line, frozen=True, tag_field="event", tag="status"):
    """The daemon's state."""

    status: dict[str, Any]


class Finding(_Line, frozen=True):
    """What was found of one thing that a daemon needs, and what to do about it."""

    check: str
    verdict: Literal["good", "warning", "bad"]
    found: str
    advice: str = ""


class DoctorReport(_Line, frozen=True, tag_field="event", tag="examined"):
    """What was found."""

    findings: list[Finding]


class Failed(_Line, frozen=True, tag_field="event", tag="failed"):
    """The request was not carried out: its words were wrong, daemon or network declined, or it waits.

    What is `waiting` is a publication that stays in the outbox without a receipt so far.
    """

    kind: Literal["usage", "refused", "waiting"]
    reason: str


Answer = (
    Published
    | OutboxList
    | Cancelled
    | Subscribed
    | Delivered
    | Lost
    | Missed
    | Covered
    | Acknowledged
    | Unsubscribed
    | SubscriptionList
    | StatusReport
    | DoctorReport
    | Failed
)

encode_line = msgspec.json.Encoder().encode
_decode_request = msgspec.json.Decoder(Request).decode
_decode_answer = msgspec.json.Decoder(Answer).decode
_decode_shown = msgspec.json.Decoder(Shown).decode


def decode_request(line: bytes) -> Request:
    """Decode an application's request; raise `DecodeError` that says what is wrong."""
    return _checked(_decode_request, line)  # type: ignore[no-any-return]


def decode_answer(line: bytes) -> Answer:
    """Decode a daemon's answer; raise `DecodeError`."""
    return _checked(_decode_answer, line)  # type: ignore[no-any-return]


def decode_shown(line: bytes) -> Shown:
    """Decode what an application says while it listens; raise `DecodeError`."""
    return _checked(_decode_shown, line)  # type: ignore[no-any-return]


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
