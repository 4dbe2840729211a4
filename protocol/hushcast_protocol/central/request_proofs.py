"""What each request of a pseudonym, and the server's answer, is proven with; one place for both ends."""

from __future__ import annotations

import hmac

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.central.frames import (
    AcknowledgeDeliveries,
    Attach,
    CentralVerdict,
    Publish,
    Subscribe,
    UserAnswer,
    WithdrawTokens,
)
from hushcast_protocol.central.introduction import PseudonymSecret, check_proof, proof
from hushcast_protocol.central.rerouting import WrappedMessage


def subscribe(pseudonym: bytes, secret: PseudonymSecret, serial: int, tokens: tuple[bytes, ...]) -> Subscribe:
    """Make a request; tokens are encrypted under the user's key."""
    return Subscribe(pseudonym, serial, tokens, proof(secret, *_subscribing(serial, tokens)))


def withdraw(
    pseudonym: bytes, secret: PseudonymSecret, serial: int, tokens: tuple[bytes, ...]
) -> WithdrawTokens:
    """Make a request; tokens as above, none for all."""
    return WithdrawTokens(pseudonym, serial, tokens, proof(secret, *_withdrawing(serial, tokens)))


def attach(pseudonym: bytes, secret: PseudonymSecret) -> Attach:
    """Make a request."""
    return Attach(pseudonym, proof(secret, b"attach"))


def publish(
    pseudonym: bytes, secret: PseudonymSecret, tokens: tuple[bytes, ...], wrapped: WrappedMessage
) -> Publish:
    """Make a request; tokens and what is wrapped are encrypted under the user's key."""
    return Publish(pseudonym, tokens, wrapped, proof(secret, *_publishing(wrapped, len(tokens))))


def followed(chain: bytes, delivery: WrappedMessage) -> bytes:
    """Return the chain (16 bytes) of a delivery, from that of the one before; the first is the salt.

    Acknowledgements are proven with it: a proxy that leaves one delivery out and says another twice gets none
    that the server takes, and so nothing is deleted that the user has not.
    """
    return digest(Domain.PROOF, chain, delivery.payload, size=LABEL)


def acknowledge(secret: PseudonymSecret, chain: bytes, number: int) -> AcknowledgeDeliveries:
    """Make an acknowledgement of all deliveries up to this number, which `chain` is of."""
    return AcknowledgeDeliveries(number, proof(secret, *_acknowledging(chain, number)))


def done(
    secret: PseudonymSecret, request: Subscribe | WithdrawTokens | Publish, verdict: CentralVerdict
) -> UserAnswer:
    """Make the server's answer to a request."""
    return UserAnswer(verdict, proof(secret, b"done", verdict.encode(), request.proof))


def check_request(secret: PseudonymSecret, request: Subscribe | WithdrawTokens | Attach | Publish) -> None:
    """Raise `AuthenticationError` where a request is not by who has the pseudonym.

    Proxies transform tokens and points, so that these cannot be proven; their number and the payload are.
    """
    if isinstance(request, Subscribe):
        parts = _subscribing(request.serial, request.tokens)
    elif isinstance(request, WithdrawTokens):
        parts = _withdrawing(request.serial, request.tokens)
    elif isinstance(request, Publish):
        parts = _publishing(request.wrapped, len(request.tokens))
    else:
        parts = (b"attach",)
    check_proof(secret, request.proof, *parts)


def check_acknowledgement(secret: PseudonymSecret, chain: bytes, number: int, given: bytes) -> None:
    """Raise `AuthenticationError` where an acknowledgement is not by who heard all of that chain."""
    check_proof(secret, given, *_acknowledging(chain, number))


def is_from_server(
    secret: PseudonymSecret, request: Subscribe | WithdrawTokens | Publish, answer: UserAnswer
) -> bool:
    """Tell whether the server itself gave this answer to the request as the user made it."""
    genuine = done(secret, request, answer.verdict)
    return hmac.compare_digest(genuine.proof or b"", answer.proof or b"")


def _subscribing(serial: int, tokens: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return b"subscribe", _number(serial), _number(len(tokens))


def _withdrawing(serial: int, tokens: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return b"withdraw", _number(serial), _number(len(tokens))


def _publishing(wrapped: WrappedMessage, tokens: int) -> tuple[bytes, ...]:
    return b"publish", digest(Domain.PROOF, wrapped.payload), _number(tokens)


def _acknowledging(chain: bytes, number: int) -> tuple[bytes, ...]:
    return b"acknowledge", chain, _number(number)


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")
