"""Confirmations: what relays answer for instructions carried out, and nobody on the way can make up.

Inside each seal is a word that its subscriber drew. A relay confirms by a hash of its word, and hashes with
its word each confirmation from below that it passes on: so who opened a parcel further down, and colludes
with it, does not find his own there. Answers to parcels of one size have as many confirmations each, sorted,
the rest of them random: neither order nor number tells whoever passes them on whose they are, or how many
hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.parcels import MAX_PARCEL
from hushcast_protocol.overlay.tree import Tree

LEAST_SEALED = 160  # bytes; a sealed withdrawal that passes nothing on has 178, and nothing has less
MAX_CONFIRMATIONS = MAX_PARCEL // LEAST_SEALED  # in the answer to the largest parcel; 53 kB


def room(size: int) -> int:
    """Return how many confirmations the answer to a sealed parcel of `size` bytes has.

    So many relays find a place in it at most, its own and those below.
    """
    return size // LEAST_SEALED


def heard(confirmations: tuple[bytes, ...], size: int) -> tuple[bytes, ...]:
    """Return the confirmations of an answer to a parcel of `size` bytes: none if there are too many."""
    return confirmations if len(confirmations) <= room(size) else ()


def confirm(word: bytes, below: Iterable[bytes], size: int, randomness: Randomness) -> tuple[bytes, ...]:
    """Return the confirmations (16 bytes each) of a relay that found `word` in a parcel of `size` bytes.

    `below` are those `heard` of the relays that it passed parcels on to.
    """
    found = {_own(word)}
    found.update(_passed_on(word, one) for one in below)
    lacking = room(size) - len(found)
    drawn = randomness(LABEL * lacking) if lacking > 0 else b""
    found.update(drawn[begin : begin + LABEL] for begin in range(0, len(drawn), LABEL))
    return tuple(sorted(found))


def expected(tree: Tree, words: Mapping[RelayId, bytes]) -> dict[RelayId, dict[bytes, RelayId]]:
    """Return, by top relay, which confirmations its answer may have, and which relay gives each.

    `words` has one for each relay of the tree.
    """
    awaited: dict[RelayId, dict[bytes, RelayId]] = {top: {} for top in tree.children.get(None, ())}
    for relay in tree.parents:
        _, *above = way = tree.way(relay)
        confirmation = _own(words[relay])
        for passing in above:
            confirmation = _passed_on(words[passing], confirmation)
        awaited[way[-1]][confirmation] = relay
    return awaited


def _own(word: bytes) -> bytes:
    return digest(Domain.CONFIRMATION, key=word, size=LABEL)


def _passed_on(word: bytes, confirmation: bytes) -> bytes:
    return digest(Domain.CONFIRMATION, confirmation, key=word, size=LABEL)
