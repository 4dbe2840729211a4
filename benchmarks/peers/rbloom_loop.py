"""Asks rbloom filters one by one; prints the microseconds that one token takes.

Arguments: next hops, elements each, tokens asked for. Runs in the peers' environment.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time

from rbloom import Bloom

ERROR_RATE = 0.001


def main(hops: int, elements: int, count: int) -> None:
    """Build the filters and ask them."""
    filters, routed = [], []
    for _ in range(hops):
        one = Bloom(elements, ERROR_RATE)
        held = [os.urandom(16) for _ in range(elements)]
        one.update(_element(token) for token in held)
        filters.append(one)
        routed.append(held[0])
    probes = [routed[number % hops] if number % 2 else os.urandom(16) for number in range(count)]
    began = time.perf_counter()
    for token in probes:
        asked = _element(token)
        [one for one in filters if asked in one]
    print((time.perf_counter() - began) / count * 1e6)


def _element(token: bytes) -> bytes:
    return hashlib.blake2b(token + bytes(64), digest_size=16).digest()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
