"""What whoever runs a gateway may ask it, and have it do, and what it answers: declared once for both ends.

A question is one line of JSON; an answer is a line for each thing, and `Done` or `Failed` behind them.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from hushcast_protocol.mqtt.limits import MAX_TOPIC

OPERATORS_SOCKET = "operators.sock"
"""In the state directory: where a gateway that runs is asked."""

Name = Annotated[str, Meta(max_length=MAX_TOPIC)]


class _Said(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", forbid_unknown_fields=True):
    def __repr__(self) -> str:
        """Show nobody's name."""
        return f"{type(self).__name__}(...)"


class ClientsQuestion(_Said, frozen=True, kw_only=True, tag="clients"):
    """Which clients there are, connected or away; of one user alone if it is given."""

    user: Name | None = None


class KickRequest(_Said, frozen=True, kw_only=True, tag="kick"):
    """Disconnect a client, and with `forget` end its session, too."""

    client: Name
    user: Name | None = None
    forget: bool = False


class RetainedQuestion(_Said, frozen=True, kw_only=True, tag="retained"):
    """Which messages are retained whose topics a filter matches."""

    filter: Name


class PurgeRequest(_Said, frozen=True, kw_only=True, tag="purge"):
    """Delete the messages that are retained or in a history, and whose topics a filter matches."""

    filter: Name


class RefusedQuestion(_Said, frozen=True, kw_only=True, tag="refused"):
    """Who was refused what in the last minutes."""


class DelayedQuestion(_Said, frozen=True, kw_only=True, tag="delayed"):
    """Which messages wait to be published."""


Question = ClientsQuestion | KickRequest | RetainedQuestion | PurgeRequest | RefusedQuestion | DelayedQuestion


class ClientLine(_Said, frozen=True, kw_only=True, tag="client"):
    """A client; what it sent and was sent is of this connection, `None` while it is away."""

    user: str
    client: str
    since: float | None
    """When it connected, Unix time; `None` while it is away."""
    until: float | None
    """When its session ends, while it is away."""
    packets_in: int | None
    bytes_in: int | None
    packets_out: int | None
    bytes_out: int | None
    filters: int
    queue: int
    """Messages that wait in its session."""
    queue_bytes: int
    inflight: int
    """Messages that it was sent and has not acknowledged."""


class RetainedLine(_Said, frozen=True, kw_only=True, tag="message"):
    """A retained message, without its payload."""

    topic: str
    bytes: int
    """Of its payload."""
    qos: int
    user: str | None
    """Who published it, empty for anybody; `None` for what came over the network, or before an upgrade."""
    travels: bool
    """Whether its topic does."""
    expires: float | None
    """Unix time."""


class RefusedLine(_Said, frozen=True, kw_only=True, tag="refusal"):
    """What one client was refused lately for one cause."""

    thing: str
    """`subscription`, `client` or `message`."""
    cause: str
    because: str
    user: str | None
    """`None` for who was not let in."""
    client: str
    subject: str
    """The filter, topic or name of the last time."""
    count: int
    began: float
    last: float
    """Unix times."""


class DelayedLine(_Said, frozen=True, kw_only=True, tag="waiting"):
    """A message that waits to be published, without its payload."""

    topic: str
    due: float
    """Unix time."""
    bytes: int
    """Of its payload."""
    qos: int
    user: str
    client: str


class Done(_Said, frozen=True, kw_only=True, tag="done"):
    """All was said or done."""

    count: int
    """Things that were told or done."""
    histories: int = 0
    """Messages of histories beside: those that are there, or were deleted."""
    elsewhere: int = 0
    """Of deletions: those whose messages came over the network, and were deleted here alone."""
    travelling: int = 0
    """Of deletions: those that go to other houses, too, once the daemon has taken them."""
    refused: int = 0
    """Deletions that were refused beside: the daemon's share is full, or an alias has no keys for them."""


class Failed(_Said, frozen=True, kw_only=True, tag="failed"):
    """It was not done; `why` says what to do."""

    why: str


Line = ClientLine | RetainedLine | RefusedLine | DelayedLine | Done | Failed
