"""Statements: what a broker signs about a filter it holds, and for whose subscriptions it vouches.

A source is a pseudonym: 16 random bytes that the edge broker of a subscriber draws for one topic and epoch.
A subscriber with many filters on a topic is one source; nobody but its edge broker can tell more. Two edge
brokers never draw the same, so sources are distinct across brokers, and a subscriber of two edge brokers
counts twice: nothing in a statement can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, PeerError
from hushcast_protocol.base.wire import Bytes16, Counter, PublicKey, Wire, decoder
from hushcast_protocol.brokers.clear_words import ShownFilter

MAX_CROWD = 256  # the largest crowd that anybody asks for, and so the most sources that one statement names
MAX_STATEMENT = 16 * MAX_CROWD + 2 * MAX_CROWD + 1024  # bytes; two of framing for each source

Pseudonym = Bytes16


class Statement(Wire, frozen=True, tag="statement/1"):
    """A broker holds a filter, or holds it no more; an edge broker vouches for its own clients behind it.

    Numbers rise from one statement of a broker to its next, whatever filter it is about. A later one about
    the same filter replaces the earlier.
    """

    broker: PublicKey
    epoch: Counter
    number: Counter
    filter: ShownFilter
    is_held: bool
    sources: Annotated[tuple[Pseudonym, ...], msgspec.Meta(max_length=MAX_CROWD)]
    bogus: Annotated[int, msgspec.Meta(ge=0, le=MAX_CROWD)]
    """How many of the sources, the last ones, stand for nobody. Other brokers are not told."""
    until: Counter


class Contradiction(Wire, frozen=True, tag="contradiction/1"):
    """Two statements of one broker with one number that differ: proof, to anybody, that it lied."""

    first: Signed
    second: Signed


_decode: Callable[[bytes], Statement] = decoder(Statement, "statement", MAX_STATEMENT)
decode_contradiction: Callable[[bytes], Contradiction] = decoder(
    Contradiction, "contradiction", 2 * (MAX_STATEMENT + 128)
)


def state(seed: Seed, statement: Statement) -> Signed:
    """Sign a statement with the broker's key."""
    return sign(seed, SignaturePurpose.STATEMENT, statement)


def read_statement(signed: Signed, broker: PublicKey) -> Statement:
    """Return a broker's statement; raise `PeerError` where it does not decode or is not by this broker."""
    statement = _decode(signed.body)
    if statement.broker != broker:
        raise AuthenticationError("a statement is about another broker")
    check(broker, SignaturePurpose.STATEMENT, signed.body, signed.signature)
    return statement


def is_proven(contradiction: Contradiction, broker: PublicKey) -> bool:
    """Tell whether two statements prove that a broker contradicted itself."""
    pair = contradiction.first, contradiction.second
    try:
        one, other = (read_statement(signed, broker) for signed in pair)
    except PeerError:
        return False
    return one.number == other.number and one != other
