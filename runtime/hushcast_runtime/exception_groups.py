"""Exception groups: the one plain error inside, which says what happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def innermost(group: BaseExceptionGroup[E]) -> E:
    """Return the first plain error in a group, however deep: one failure ends a nursery."""
    error: E | BaseExceptionGroup[E] = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@contextmanager
def ungrouped(*kinds: type[Exception]) -> Iterator[None]:
    """Raise an error of these kinds as itself where a nursery made a group of it.

    Errors of other kinds in the group are raised in place of it, as `except*` does.
    """
    failure: Exception | None = None
    try:
        yield
    except* kinds as errors:
        failure = innermost(errors)  # Python before 3.11.4 makes a group of what is raised in here
    if failure is not None:
        raise failure
