"""Subscriptions that are kept and change: moved, or cut anew where the owner's rule is another one."""

from __future__ import annotations

import pytest
from providing import OWNER, Town
from test_following import AT, following, interval, take

import hushcast_located
from hushcast_located import RequestAccepted, Uncovered
from hushcast_located.subscriber.subscription_files import look
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.keywords import WordRule
from hushcast_protocol.spatial.places import chord, place_of
from hushcast_protocol.spatial.weight_table import sign_table

THERE = (61.5, 23.8)


async def test_a_subscription_that_is_kept_moves(town: Town) -> None:
    async def program() -> None:
        async with following(town, name="shoes") as feed:
            await take(feed, RequestAccepted)
            await town.interval()
            assert (await interval(feed)).is_complete
        async with following(town, name="shoes", at=THERE, keywords=["boot"]) as feed:
            await town.interval()  # answered as it was asked before
            assert not (await interval(feed)).is_complete
            await take(feed, RequestAccepted)
            (held,) = (one.subscription for one in town.provider.held.values())
            assert (held.place, held.words) == (place_of(*THERE), ("boot",))
            await town.interval()
            assert (await interval(feed)).is_complete
        async with following(town, name="shoes", at=THERE) as feed:
            await town.interval()
            assert (await interval(feed)).is_complete
        kept = look(town.folder, "shoes")
        assert kept is not None
        assert (kept.keywords, kept.number) == ("boot", 3), "where nothing moves, nothing is asked"
        with pytest.raises(UsageError, match="has no word"):
            async with following(town, name="shoes", keywords=["…"]):
                pass

    await town.run(program)


async def test_with_blur_what_is_told_follows(town: Town) -> None:
    async def program() -> None:
        town.provider.batch()
        async with following(town, name="near", blur=20.0) as feed:
            await take(feed, RequestAccepted)
        (before,) = (one.subscription.place for one in town.provider.held.values())
        async with following(town, name="near", at=THERE) as feed:
            await take(feed, RequestAccepted)
        (after,) = (one.subscription.place for one in town.provider.held.values())
        assert place_of(*THERE) != after != before

    await town.run(program)


async def test_another_rule_of_words_is_asked_by(town: Town) -> None:
    """The feed is of before: its owner has texts cut into runs."""

    async def program() -> None:
        town.provider.table = sign_table(OWNER, 1, {"大雨警報": 900}, 1000, chord(100), WordRule.RUNS)
        async with following(town, name="rain", at=AT, keywords=["大雨警報"]) as feed:
            await take(feed, RequestAccepted)
            assert len(next(iter(town.provider.held.values())).subscription.words) == 3
            await town.interval()
            assert not (await interval(feed)).is_complete
            told = await take(feed, Uncovered)
            assert isinstance(told, Uncovered)
            assert told.is_mended
            await take(feed, RequestAccepted)
            (held,) = (one.subscription for one in town.provider.held.values())
            assert held.words == ("大雨警報",)
            await town.interval()
            assert (await interval(feed)).is_complete
        kept = look(town.folder, "rain")
        assert kept is not None
        assert kept.rule is WordRule.RUNS

    await town.run(program)


def test_a_move_needs_a_name() -> None:
    for how in ({"at": AT}, {"name": "shoes", "blur": 5.0}):
        with pytest.raises(UsageError):
            hushcast_located.subscribe(None, **how)  # type: ignore[arg-type]
