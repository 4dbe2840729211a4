"""Exception groups: the one plain error inside, which says what happened."""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def innermost(group: BaseExceptionGroup[E]) -> E:
    """Return the first plain error in a group, however deep: one failure ends a nursery."""
    error: E | BaseExceptionGroup[E] = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
