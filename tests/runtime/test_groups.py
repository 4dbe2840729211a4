"""What a nursery wraps in groups, and what who waits for an error gets of it."""

from __future__ import annotations

import pytest
import trio

from hushcast_runtime.exception_groups import ungrouped


async def fail(error: Exception) -> None:
    await trio.lowlevel.checkpoint()
    raise error


async def fail_deep(error: Exception) -> None:
    with ungrouped(KeyError, ValueError):
        async with trio.open_nursery() as outer, trio.open_nursery() as inner:
            outer.start_soon(trio.sleep_forever)
            inner.start_soon(fail, error)


async def test_an_error_of_a_kind_comes_as_itself_however_deep() -> None:
    with pytest.raises(ValueError, match="deep"):
        await fail_deep(ValueError("deep"))


def test_so_does_one_that_nothing_wrapped() -> None:
    with pytest.raises(ValueError, match="plain"), ungrouped(ValueError):
        raise ValueError("plain")


@pytest.mark.parametrize("kinds", [(ValueError,), (OSError, ValueError)])
def test_others_stay_in_their_group(kinds: tuple[type[Exception], ...]) -> None:
    with pytest.raises(ExceptionGroup) as met, ungrouped(*kinds):
        raise ExceptionGroup("two", [ValueError("of a kind"), KeyError("of another")])
    assert [type(error) for error in met.value.exceptions] == [KeyError]


async def test_who_is_cancelled_and_meets_no_error_hears_of_none() -> None:
    with trio.move_on_after(0) as scope, ungrouped(ValueError):
        await trio.sleep_forever()
    assert scope.cancelled_caught
