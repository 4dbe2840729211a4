"""What a proxy multiplied lately: a user's tokens of a day recur, and looking up costs next to nothing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.central.rerouting import transformed

MAX_REMEMBERED = 32_768  # transformations; some 13 MB


class Transformer:
    """Transforms tokens, and remembers the results that were asked for last."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._transformed = lru_cache(limit)(transformed)

    def tokens(self, factor: Scalar, tokens: Iterable[bytes]) -> tuple[bytes, ...]:
        """Turn tokens under k into those under k', with k'/k; `AuthenticationError` where a point is none."""
        return tuple([self._transformed(factor, token) for token in tokens])

    def __len__(self) -> int:
        return self._transformed.cache_info().currsize

    def forget(self) -> None:
        """Forget all; when a day is over, its factors are not to stay."""
        self._transformed.cache_clear()
