"""Stateless randomness: each draw is a hash of the seed, its purpose, and the ids that it concerns.

So a row is the same on every machine and in every order of execution. The hash is the finaliser
of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), which mixes well and is no secret.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[Any] | int

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def words(seed: int, purpose: str, *keys: Keys) -> Words:
    """Return 64 random bits for each combination of keys, which are whole numbers and broadcast."""
    state = np.asarray(_start(seed, purpose))
    with np.errstate(over="ignore"):
        for key in keys:
            state = _mixed(state ^ np.asarray(key).astype(np.int64).view(np.uint64)) + _GOLDEN
        mixed: Words = _mixed(state)
    return mixed


def uniform(seed: int, purpose: str, *keys: Keys) -> Floats:
    """Return a number from [0, 1) for each combination of keys."""
    return (words(seed, purpose, *keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def hexes(seed: int, purpose: str, size: int, *keys: Keys) -> pa.Array:
    """Return `size` (a multiple of 8) random bytes in hexadecimal for each combination of keys.

    Together the keys have one dimension.
    """
    parts = [words(seed, purpose, *keys, part) for part in range(size // 8)]
    raw = np.stack(parts, axis=-1).astype(">u8").view(np.uint8)
    count = raw.shape[0]
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(2 * size)
    text = _DIGITS[raw]
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text.tobytes()))


_DIGITS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)


@lru_cache(maxsize=1024)
def _start(seed: int, purpose: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(f"{seed} {purpose}".encode(), digest_size=8).digest()))


def _mixed(state: Any) -> Any:
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))
