"""Ed25519 signatures over exact bytes, each use in a domain of its own."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from nacl.exceptions import BadSignatureError, CryptoError
from nacl.signing import VerifyKey

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import Bytes64, PublicKey, Wire, encode

T = TypeVar("T")


class SignaturePurpose(bytes, Enum):
    """What a signature is for; it is signed with the bytes."""

    DESCRIPTOR = b"hushcast descriptor 1\x00"
    ROSTER = b"hushcast roster 1\x00"
    HANDOVER = b"hushcast handover 1\x00"
    HOST_CARD = b"hushcast host card 1\x00"
    AUTHOR = b"hushcast author 1\x00"
    PART = b"hushcast part 1\x00"
    BROKER_TREE = b"hushcast broker tree 1\x00"
    CENTRAL_WIRE = b"hushcast central wire 1\x00"
    CHARTER = b"hushcast charter 1\x00"
    LINK_INITIATOR = b"hushcast link initiator 1\x00"
    LINK_RESPONDER = b"hushcast link responder 1\x00"
    STATEMENT = b"hushcast statement 1\x00"
    ANSWER = b"hushcast answer 1\x00"
    LOCATED_BATCH = b"hushcast located batch 1\x00"
    LOCATED_TABLE = b"hushcast located table 1\x00"
    LOCATED_HANDOVER = b"hushcast located handover 1\x00"
    VOCABULARY = b"hushcast vocabulary 1\x00"
    GRANT = b"hushcast grant 1\x00"
    BALLOT = b"hushcast ballot 1\x00"
    DEVICE_ENTRY = b"hushcast device entry 1\x00"
    DEVICE_BEAT = b"hushcast device beat 1\x00"
    DEVICE_INVITATION = b"hushcast device invitation 1\x00"
    NEW_SECRET = b"hushcast new secret 1\x00"
    ASSENT = b"hushcast assent 1\x00"
    LANE_HOLD = b"hushcast lane hold 1\x00"


class Signed(Wire, frozen=True, tag="signed"):
    """Bytes and the signature over them; the bytes are kept as received and never encoded anew."""

    body: bytes
    signature: Bytes64


def signature(seed: Seed, purpose: SignaturePurpose, body: bytes) -> bytes:
    """Return the 64-byte signature of `body` for `purpose`."""
    return seed.signing_key().sign(purpose.value + body).signature


def sign(seed: Seed, purpose: SignaturePurpose, value: object) -> Signed:
    """Encode `value` and sign the encoding."""
    body = encode(value)
    return Signed(body, signature(seed, purpose, body))


def check(public: PublicKey, purpose: SignaturePurpose, body: bytes, given: bytes) -> None:
    """Raise `AuthenticationError` unless `given` is the signature of `body` under `public`."""
    try:
        VerifyKey(public).verify(purpose.value + body, given)
    except (BadSignatureError, CryptoError, ValueError):
        raise AuthenticationError(f"a {purpose.name.lower()} signature does not hold") from None
