"""An owner that takes another key, over a network in memory: nobody loses the chain, and all are told."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import trio
from feeding import House, Subscriber
from owning import Estate

from hushcast_located.keys import new_owner
from hushcast_located.owner_handover import revoke
from hushcast_located.owner_service.doctor import own_findings as owners_findings
from hushcast_located.owner_service.owner_seeds import open_seeds
from hushcast_located.paced_publication import to_publish
from hushcast_located.service.doctor import own_findings as providers_findings
from hushcast_located.service.identity import open_identity
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.spatial.answer_problems import InvalidAnswer
from hushcast_protocol.spatial.located_answer import LocatedAnswer
from hushcast_protocol.spatial.located_requests import RequestConfirmation
from hushcast_protocol.spatial.located_subscription import read_subscription
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_protocol.spatial.verifier import verify_answer

_, EVERYTHING = read_subscription(
    b'{"lat": 60.17, "lon": 24.94, "keywords": "storm", "alpha": 1, "threshold": 0}'
)


class Region:
    """An owner, a provider and a subscriber; the first two die and come again."""

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.folder, self.nursery = folder, nursery
        self.estate = Estate(folder / "estate")
        link = (self.estate.folder / "feed.link").read_text().strip()
        self.house = House(folder / "house", self.estate.daemon, link, owner=self.estate.seed)
        self.first = self.estate.seed.public()
        self.subscriber: Subscriber

    async def start(self) -> None:
        await self.estate.daemon.start(self.nursery)
        self.subscriber = Subscriber(self.estate.daemon, self.house.offer, EVERYTHING)
        await self.nursery.start(self.subscriber.listen)

    def hand_over(self, name: str) -> None:
        """Configure a new key beside the one that signed so far."""
        new_owner(self.folder / name, os.urandom)
        old = self.estate.settings.key or str(self.estate.folder / "state" / "owner.key")
        self.configure(key=str(self.folder / name), former_key=old)

    def configure(self, **changed: str | None) -> None:
        self.estate.settings = msgspec.structs.replace(self.estate.settings, **changed)
        self.estate.seeds = open_seeds(self.estate.settings, os.urandom)

    async def intervals(self, count: int) -> None:
        """Let the owner sign, and wait until the subscriber has an answer more for each."""
        before = len(self.subscriber.answers)
        for _ in range(count):
            await self.estate.next_batch()
        await self.subscriber.until(LocatedAnswer, before + count)

    @property
    def keys(self) -> OwnerKeys:
        """As the subscriber knows them, who was told the first one."""
        keys = OwnerKeys(self.first)
        for answer in self.subscriber.answers:
            keys = keys.extended(answer.keys)
        return keys

    def verified(self) -> list[int]:
        found = []
        before = None
        for answer in self.subscriber.answers:
            keys = OwnerKeys.read(self.first, answer.keys)
            before = verify_answer(keys, EVERYTHING, answer, before).batch
            found.append(before.body.number)
        return found


def by_check(findings: list[Finding]) -> dict[str, str]:
    return {one.check: one.verdict for one in findings}


@pytest.fixture
async def region(tmp_path: Path) -> AsyncIterator[Region]:
    async with trio.open_nursery() as nursery:
        region = Region(tmp_path, nursery)
        await region.start()
        yield region
        nursery.cancel_scope.cancel()


async def test_all_follow_from_key_to_key_and_doctors_tell(region: Region) -> None:
    async with region.house.running() as provider:
        async with region.estate.running():
            await region.subscriber.subscribed()
            await region.intervals(2)
        for name in ("second.key", "third.key"):
            region.hand_over(name)
            async with region.estate.running() as owner:
                told = by_check(owners_findings(region.estate.settings, owner, region.estate.counters))
                assert told["former key"] == "good"
                await region.intervals(3)
                told = by_check(owners_findings(region.estate.settings, owner, region.estate.counters))
                assert told["former key"] == "warning", "it can go"
        region.configure(former_key=None)
        async with region.estate.running():
            await region.intervals(1)
        told = by_check(providers_findings(region.house.settings, provider.shelf, True))
        assert told["owner"] == "warning"
    assert region.verified() == [*range(1, 10)]
    assert region.keys.current == region.estate.seed.public()
    assert [one.last for one in region.keys.said] == [2, 5]
    assert region.house.counters["feed_foreign"] == region.house.counters["batches_refused"] == 0
    region.estate.signed()  # each signed by the key of its time


async def test_a_provider_that_comes_again_or_names_the_new_key_answers_on(region: Region) -> None:
    async with region.house.running(), region.estate.running():
        await region.subscriber.subscribed()
        await region.intervals(1)
    region.hand_over("second.key")
    async with region.house.running(), region.estate.running():
        await region.intervals(2)
    async with region.house.running() as provider, region.estate.running():
        assert provider.shelf.keys.current == region.estate.seed.public()
        await region.intervals(1)
    region.configure(former_key=None)
    house = region.house
    house.settings = msgspec.structs.replace(house.settings, owner=region.estate.seed.public().hex())
    house.identity = open_identity(house.settings, os.urandom)
    async with house.running() as provider, region.estate.running():
        await region.subscriber.ask(region.subscriber.subscribe(2))
        await region.subscriber.until(RequestConfirmation, 2)
        await region.intervals(1)
        assert by_check(providers_findings(house.settings, provider.shelf, True))["owner"] == "good"
    assert region.verified() == [*range(1, 6)], "also for who knows the first key alone"


async def test_a_kill_between_hand_over_and_batch_changes_nothing(region: Region) -> None:
    async with region.house.running():
        async with region.estate.running():
            await region.subscriber.subscribed()
            await region.intervals(1)
        region.hand_over("second.key")
        for _ in range(3):
            async with region.estate.running():
                pass
        assert len(region.estate.batches.handovers()) == 1
        async with region.estate.running():
            await region.intervals(2)
    assert region.verified() == [1, 2, 3]


async def test_an_old_key_signs_no_more_and_a_strangers_takes_nothing_over(region: Region) -> None:
    async with region.estate.running():
        await region.estate.next_batch()
    first = region.estate.settings
    region.hand_over("second.key")
    async with region.estate.running():
        await region.estate.next_batch()
    handed = region.estate.settings
    new_owner(region.folder / "stranger.key", os.urandom)
    for wrong, told in (
        ({"key": first.key, "former_key": None}, "handed over"),
        ({"key": str(region.folder / "stranger.key"), "former_key": None}, "another owner's"),
        ({"key": str(region.folder / "stranger.key"), "former_key": handed.former_key}, "another owner's"),
    ):
        region.configure(**wrong)
        with pytest.raises(BaseExceptionGroup) as raised:
            async with region.estate.running():
                pass
        assert raised.group_contains(UsageError, match=told)


async def test_a_revoked_key_ends_the_feed_for_all(region: Region) -> None:
    async with region.house.running() as provider:
        async with region.estate.running():
            await region.subscriber.subscribed()
            await region.intervals(2)
        last = revoke(region.estate.seed, region.estate.batches, int(region.estate.now) + 60)
        assert (last.body.number, last.body.count, last.body.seconds) == (3, 0, 60)
        with pytest.raises(BaseExceptionGroup) as raised:
            async with region.estate.running():
                pass
        assert raised.group_contains(UsageError, match="was revoked")
        link = (region.estate.folder / "feed.link").read_text().strip()
        for part in to_publish(region.estate.seed, region.estate.batches, None, True)[1]:
            await region.estate.daemon.put(link, part, author=region.estate.seed)
        await region.subscriber.until(LocatedAnswer, 3)
        told = by_check(providers_findings(region.house.settings, provider.shelf, True))
        assert told["owner"] == "bad"
    assert region.verified() == [1, 2, 3]
    assert region.keys.end == 3
    with pytest.raises(InvalidAnswer, match="revoked"):
        region.keys.of(4)
