"""Merkle trees over 2^k leaves: one root stands for all, and k hashes prove one of them."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_protocol.base.crypto.hashes import Domain, digest


class MerkleTree:
    """A tree over as many hashes (32 bytes each) as a power of two."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        """Raises `ValueError` where the leaves are no power of two."""
        if len(leaves).bit_count() != 1:
            raise ValueError("a tree is over a power of two of leaves")
        self._levels = [list(leaves)]
        while len(below := self._levels[-1]) > 1:
            self._levels.append([_join(*below[place : place + 2]) for place in range(0, len(below), 2)])

    @property
    def root(self) -> bytes:
        """32 bytes that stand for all leaves; of a single leaf, itself."""
        return self._levels[-1][0]

    def path(self, place: int) -> tuple[bytes, ...]:
        """Return the hashes beside the way from a leaf to the root, the lowest first."""
        return tuple(level[(place >> height) ^ 1] for height, level in enumerate(self._levels[:-1]))


def root_by(leaf: bytes, place: int, path: Sequence[bytes]) -> bytes:
    """Return the root that a leaf at a place, from 0, and a path lead to."""
    for height, beside in enumerate(path):
        leaf = _join(beside, leaf) if place >> height & 1 else _join(leaf, beside)
    return leaf


def _join(left: bytes, right: bytes) -> bytes:
    return digest(Domain.MERKLE, left, right)
