"""Figure: transformations a second, from a user's frame to the server's, beside the bare group operation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice

from nacl.bindings import crypto_scalarmult_ed25519_noclamp

from benchmarks.figures import Effort, Figure, alternate, at_least
from hushcast_protocol.base.crypto.group import Scalar, hashed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import (
    MAX_SUBSCRIBED,
    ProxyRequest,
    Publish,
    Subscribe,
    decode_from_user,
)
from hushcast_protocol.central.introduction import PseudonymSecret, pseudonym_of
from hushcast_protocol.central.rerouting import encrypted, rerouted, transformed, wrap
from hushcast_protocol.central.token_transformer import Transformer
from hushcast_protocol.content.tokens import TOKEN_COUNTS

TOKENS = 1000  # of a day
OPERATIONS = 4000  # a run
INSIDE = 1280  # bytes, of a message with 1 KiB

_FEWEST = TOKEN_COUNTS[0]  # tokens of a publication
_BARE = "crypto_scalarmult_ed25519_noclamp"


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure in turns: one multiplication, and what a proxy does with a frame."""
    factor, key, secret = Scalar.draw(os.urandom), Scalar.draw(os.urandom), PseudonymSecret.draw(os.urandom)
    name = pseudonym_of(secret)
    tokens = [encrypted(key, os.urandom(16)) for _ in range(TOKENS)]
    size = effort.amount(OPERATIONS)

    def drawn(count: int) -> tuple[bytes, ...]:
        return tuple(islice(endless, count))

    endless = cycle(tokens)
    subscribing = [
        encode(request_proofs.subscribe(name, secret, serial, drawn(MAX_SUBSCRIBED)))
        for serial in range(max(1, size // MAX_SUBSCRIBED))
    ]
    publishing = [
        encode(
            request_proofs.publish(name, secret, drawn(_FEWEST), wrap(key, os.urandom(INSIDE), os.urandom))
        )
        for _ in range(max(1, size // _FEWEST))
    ]
    points = [hashed(os.urandom(16)) for _ in range(size)]
    scalar = factor.reveal()
    remembered = Transformer(2 * TOKENS)
    remembered.tokens(factor, tokens)

    def anew(factor: Scalar, tokens: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return tuple([transformed(factor, token) for token in tokens])

    found = alternate(
        effort.runs,
        {
            _BARE: lambda: _rate(
                len(points), lambda: [crypto_scalarmult_ed25519_noclamp(scalar, point) for point in points]
            ),
            "tokens anew": lambda: _passed(subscribing, factor, anew),
            "tokens recur": lambda: _passed(subscribing, factor, remembered.tokens),
            "publications anew": lambda: _passed(publishing, factor, anew),
            "publications recur": lambda: _passed(publishing, factor, remembered.tokens),
        },
    )
    bare = found[_BARE]
    told = "transformations a second at a proxy, frame to frame"
    for name_of, target, side in (
        ("subscriptions, tokens seen before", 0.8, "tokens recur"),
        ("subscriptions, all tokens new", 0.6, "tokens anew"),
        ("publications of 1 KiB, tokens seen before", 0.8, "publications recur"),
        ("publications of 1 KiB, all tokens new", 0.6, "publications anew"),
    ):
        yield at_least(f"{told}, {name_of}: at least times", found[side], _BARE, bare, target)


def _passed(
    frames: list[bytes], factor: Scalar, tokens: Callable[[Scalar, tuple[bytes, ...]], tuple[bytes, ...]]
) -> float:
    """Do with frames what a proxy does; return the transformations a second: of tokens, and of masks."""
    began, done = time.process_time(), 0
    for number, data in enumerate(frames):
        frame = decode_from_user(data)
        if isinstance(frame, Publish):
            onward: Subscribe | Publish = Publish(
                frame.pseudonym, tokens(factor, frame.tokens), rerouted(factor, frame.wrapped), frame.proof
            )
            done += 1
        else:
            assert isinstance(frame, Subscribe)
            onward = Subscribe(frame.pseudonym, frame.serial, tokens(factor, frame.tokens), frame.proof)
        encode(ProxyRequest(number, onward))
        done += len(onward.tokens)
    return done / (time.process_time() - began)


def _rate(count: int, work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return count / (time.process_time() - began)
