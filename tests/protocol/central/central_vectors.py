"""Computes `central_vectors.json` with nothing but integers and BLAKE2b.

Run it: `python tests/protocol/central/central_vectors.py`. Formulas from RFC 8032 §5.1 (the curve), RFC 9380
§6.7.1 (Elligator 2, its sign and cofactor as libsodium has them), RFC 8439 §2 (ChaCha20, Poly1305) and
draft-irtf-cfrg-xchacha-03 §2 (HChaCha20). It imports nothing of ours, and no library for cryptography. Slow,
and not constant in time.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

VECTORS = Path(__file__).with_suffix(".json")

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
J = 486662  # of Curve25519, the curve in the other form
ROOT = pow(2, (P - 1) // 4, P)  # of -1

Point = tuple[int, int]
NEUTRAL: Point = (0, 1)


def add(one: Point, other: Point) -> Point:
    """Add two points of the curve; the formula has no exceptions."""
    (x1, y1), (x2, y2) = one, other
    product = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, P)
    return x % P, y % P


def times(scalar: int, point: Point) -> Point:
    """Multiply by doubling and adding."""
    result = NEUTRAL
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def root(square: int) -> int | None:
    """Return a square root modulo p, where there is one (RFC 8032 §5.1.3)."""
    found = pow(square, (P + 3) // 8, P)
    for candidate in (found, found * ROOT % P):
        if candidate * candidate % P == square % P:
            return candidate
    return None


def with_height(y: int, sign: int) -> Point | None:
    """Return the point at that y, the lowest bit of x as told."""
    x = root((y * y - 1) * pow(D * y * y + 1, -1, P) % P)
    if x is None or (x == 0 and sign):
        return None
    return (x if x & 1 == sign else P - x), y


def encoded(point: Point) -> bytes:
    """Encode as RFC 8032 does."""
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def decoded(data: bytes) -> Point | None:
    """Decode strictly: None for what is no point, or not in its one encoding."""
    number = int.from_bytes(data, "little")
    y = number & (2**255 - 1)
    return None if y >= P else with_height(y, number >> 255)


def elligator(data: bytes) -> Point:
    """Map 32 bytes to the subgroup: the top bit is the sign of x, the others are a number of the field."""
    number = int.from_bytes(data, "little")
    sign, u = number >> 255, (number & (2**255 - 1)) % P
    x = -J * pow(1 + 2 * u * u, -1, P) % P
    if root(x**3 + J * x * x + x) is None:
        x = (-x - J) % P
    point = with_height((x - 1) * pow(x + 1, -1, P) % P, sign)
    assert point is not None
    return times(8, point)


BASE = with_height(4 * pow(5, -1, P) % P, 0)
assert BASE is not None


def torsion() -> list[Point]:
    """Return the eight points whose order divides eight."""
    for y in range(2, 50):
        for sign in (0, 1):
            point = with_height(y, sign)
            small = point and times(L, point)
            if small and times(4, small) != NEUTRAL:
                return [times(count, small) for count in range(8)]
    raise AssertionError("no point of order eight")


def digest(person: str, *parts: bytes, key: bytes = b"", size: int = 32) -> bytes:
    """Hash as docs/protocol.md says: each part with its length before it."""
    data = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return blake2b(data, person=person.encode(), key=key, digest_size=size).digest()


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def _bytes(words: list[int]) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


def _rounds(state: list[int]) -> list[int]:
    """Twenty rounds of ChaCha, without the addition at the end."""
    s = list(state)
    columns = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    diagonals = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for _ in range(10):
        for a, b, c, d in columns + diagonals:
            for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                s[x] = (s[x] + s[y]) & 0xFFFFFFFF
                mixed = s[z] ^ s[x]
                s[z] = (mixed << turn | mixed >> (32 - turn)) & 0xFFFFFFFF
    return s


CONSTANTS = _words(b"expand 32-byte k")


def chacha(key: bytes, nonce: bytes, counter: int, length: int) -> bytes:
    """Return so many bytes of the key stream (RFC 8439 §2.4)."""
    stream = b""
    while len(stream) < length:
        state = [*CONSTANTS, *_words(key), counter, *_words(nonce)]
        stream += _bytes(
            [(one + other) & 0xFFFFFFFF for one, other in zip(_rounds(state), state, strict=True)]
        )
        counter += 1
    return stream[:length]


def hchacha(key: bytes, nonce: bytes) -> bytes:
    """Return the key that the first 16 bytes of a long nonce lead to."""
    done = _rounds([*CONSTANTS, *_words(key), *_words(nonce)])
    return _bytes(done[:4] + done[12:])


def poly1305(key: bytes, message: bytes) -> bytes:
    """Return the tag (RFC 8439 §2.5)."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(message), 16):
        total = (total + int.from_bytes(message[at : at + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return ((total + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


def sealed(key: bytes, nonce: bytes, plain: bytes, associated: bytes) -> bytes:
    """XChaCha20-Poly1305: text and tag."""
    inner, short = hchacha(key, nonce[:16]), bytes(4) + nonce[16:]
    text = bytes(a ^ b for a, b in zip(plain, chacha(inner, short, 1, len(plain)), strict=True))
    padded = associated + bytes(-len(associated) % 16) + text + bytes(-len(text) % 16)
    lengths = len(associated).to_bytes(8, "little") + len(text).to_bytes(8, "little")
    return text + poly1305(chacha(inner, short, 0, 32), padded + lengths)


def number(name: str) -> int:
    """Return a scalar that stands in the vectors under this name."""
    return int.from_bytes(blake2b(name.encode()).digest(), "little") % L


def _scalar(value: int) -> str:
    return value.to_bytes(32, "little").hex()


def _hashed(data: bytes) -> Point:
    return elligator(digest("hc.point", data))


def vectors() -> dict[str, object]:
    """Return all vectors; bytes are in hex."""
    assert BASE is not None
    user, server, blinding = number("user"), number("server"), number("blinding")
    factor = server * pow(blinding * user, -1, L) % L
    transformation = blinding * factor % L
    tokens = [b"", b"token", bytes(16), bytes(range(16)), b"\xff" * 32]
    random = b"".join(blake2b(b"random %d" % n).digest() for n in range(2))
    r, m = (int.from_bytes(random[at : at + 64], "little") % L for at in (0, 64))
    hidden = times(m, BASE)
    inside = b"what is inside, longer than one block of ChaCha20, which is of sixty-four bytes"
    secret, salt, serial = blake2b(b"secret").digest()[:32], bytes(range(16)), 7

    def proof(*parts: bytes) -> str:
        return digest("hc.proof", *parts, key=secret, size=16).hex()

    payload = sealed(digest("hc.wrapped-key", encoded(hidden)), bytes(24), inside, b"hushcast wrapped 1\x00")
    publishing = proof(b"publish", digest("hc.proof", payload), (3).to_bytes(8, "big"))
    chain = digest("hc.proof", salt, payload, size=16)
    return {
        "uniform": [
            {"bytes": data.hex(), "point": encoded(elligator(data)).hex()}
            for data in (
                bytes(32),
                b"\xff" * 32,
                b"\x7f" * 32,
                *(blake2b(b"u%d" % n).digest()[:32] for n in range(8)),
            )
        ],
        "user": _scalar(user),
        "server": _scalar(server),
        "blinding": _scalar(blinding),
        "blinded": _scalar(blinding * user % L),
        "factor": _scalar(factor),
        "transformation": _scalar(transformation),
        "inverse": _scalar(pow(transformation, -1, L)),
        "tokens": [
            {
                "token": token.hex(),
                "hashed": encoded(_hashed(token)).hex(),
                "user": encoded(times(user, _hashed(token))).hex(),
                "server": encoded(times(server, _hashed(token))).hex(),
            }
            for token in tokens
        ],
        "wrapped": {
            "random": random.hex(),
            "inside": inside.hex(),
            "user_mask": encoded(times(r * user % L, BASE)).hex(),
            "server_mask": encoded(times(r * server % L, BASE)).hex(),
            "masked": encoded(add(hidden, times(r, BASE))).hex(),
            "payload": payload.hex(),
        },
        "proofs": {
            "secret": secret.hex(),
            "pseudonym": digest("hc.pseudonym", secret).hex(),
            "salt": salt.hex(),
            "attach": proof(b"attach"),
            "subscribe": proof(b"subscribe", serial.to_bytes(8, "big"), (3).to_bytes(8, "big")),
            "withdraw": proof(b"withdraw", serial.to_bytes(8, "big"), (3).to_bytes(8, "big")),
            "publish": publishing,
            "accepted": proof(b"done", b"accepted", bytes.fromhex(publishing)),
            "acknowledge": proof(b"acknowledge", chain, (1).to_bytes(8, "big")),
        },
        "torsion": [encoded(point).hex() for point in torsion()],
    }


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1) + "\n")
