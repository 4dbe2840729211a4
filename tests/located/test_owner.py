"""An owner that runs: what it takes in, that no interval is missing, and what a kill costs."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from feeding import House, Subscriber
from owning import SECONDS, START, Estate

from hushcast.keys import new_link, write_link
from hushcast_located.input_lines import MAX_LINE
from hushcast_located.owner_service.doctor import own_findings
from hushcast_located.owner_service.intake import FILE
from hushcast_located.owner_service.owner_seeds import OwnerSeeds
from hushcast_located.owner_service.settings import OwnersDaemonSection, OwnerSettings, OwnersInputSection
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.located_answer import LocatedAnswer
from hushcast_protocol.spatial.located_subscription import read_subscription
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_protocol.spatial.verifier import verify_answer
from hushcast_protocol.spatial.weight_table import sign_again

CAP = """<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>cap-%s</identifier>
<status>Actual</status><msgType>Alert</msgType><scope>Public</scope><info><event>Storm</event>
<area><areaDesc>coast</areaDesc><circle>60.1,24.9 10</circle></area></info></alert>"""
_, STORM = read_subscription(
    b'{"lat": 60.17, "lon": 24.94, "keywords": "storm", "alpha": 0.5, "threshold": 0.7}'
)


def line(name: str, text: str = "storm") -> str:
    return json.dumps({"id": name, "lat": 60.2, "lon": 24.9, "text": text}) + "\n"


@pytest.fixture
async def nursery_of_daemons() -> AsyncIterator[trio.Nursery]:
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()


async def test_whoever_subscribes_hears_of_a_file_that_was_put_into_the_folder(
    tmp_path: Path, nursery_of_daemons: trio.Nursery
) -> None:
    estate = Estate(tmp_path / "estate")
    await estate.daemon.start(nursery_of_daemons)
    link = (estate.folder / "feed.link").read_text().strip()
    house = House(tmp_path / "house", estate.daemon, link, owner=estate.seed)
    estate.put("storm.xml", CAP % 1)
    async with estate.running() as owner, house.running():
        subscriber = Subscriber(estate.daemon, house.offer, STORM)
        await nursery_of_daemons.start(subscriber.listen)
        await subscriber.subscribed()
        await estate.until(lambda: len(owner.pool) == 1)
        await estate.next_batch()
        await estate.next_batch()
        await subscriber.until(LocatedAnswer, 2)
    said = [verify_answer(OwnerKeys(estate.seed.public()), STORM, one) for one in subscriber.answers]
    assert [[one.id for one in each.messages] for each in said] == [["cap-1"], []]


async def test_lines_and_a_topic_are_taken_too(tmp_path: Path, nursery_of_daemons: trio.Nursery) -> None:
    write_link(tmp_path / "input.link", topic := new_link("input", private=True))
    given = {"lines": str(tmp_path / "lines"), "topic": str(tmp_path / "input.link")}
    estate = Estate(tmp_path / "estate", **given)
    await estate.daemon.start(nursery_of_daemons)
    async with estate.running() as owner:
        await estate.until((tmp_path / "lines").exists)
        async with await trio.open_file(tmp_path / "lines", "wb") as pipe:
            for part in (
                line("1").encode()[:9],
                line("1").encode()[9:],
                b"\n",
                b"x" * (MAX_LINE + 9),
                b"y\n",
            ):
                await pipe.write(part)
                await pipe.flush()
            await pipe.write(b'{"id": "no place"}\n' + line("2").encode())
        await estate.until(lambda: len(owner.pool) == 2)
        await estate.daemon.put(topic, (line("3") + line("4")).encode())
        await estate.daemon.put(topic, (CAP % 5).encode())
        await estate.daemon.put(topic, b"<alert/>")
        await estate.until(lambda: len(owner.pool) == 5)
        await estate.until(lambda: estate.counters["input_refused"] == 3)
        await estate.next_batch()
        by_check = {one.check: one for one in own_findings(estate.settings, owner, estate.counters)}
        assert (by_check["batches"].verdict, by_check["input"].verdict) == ("good", "warning")
        assert estate.seed.public().hex() in str(by_check["key"])
    assert sorted(estate.signed()) == ["1", "2", "3", "4", "cap-5"]


async def test_a_message_is_in_one_batch_however_often_it_is_there(
    tmp_path: Path, nursery_of_daemons: trio.Nursery
) -> None:
    estate = Estate(tmp_path)
    await estate.daemon.start(nursery_of_daemons)
    estate.put("a.jsonl", line("1") + line("2"))
    async with estate.running() as owner:
        await estate.until(lambda: len(owner.pool) == 2)
        await estate.next_batch()
    estate.put("a.jsonl", line("1") + line("2", "storm over") + line("3"))
    async with estate.running() as owner:
        await estate.until(lambda: len(owner.pool) == 2)
        await estate.next_batch()
    assert estate.signed() == {"1": [1], "2": [1, 2], "3": [2]}
    (estate.inbox / "a.jsonl").unlink()
    async with estate.running():
        await estate.next_batch()
    assert await estate.store.scan(FILE) == []
    await estate.until_published(1, 2, 3)


@pytest.mark.parametrize("writes", range(9))
async def test_a_kill_at_any_write_loses_nothing_and_signs_nothing_twice(
    tmp_path: Path, nursery_of_daemons: trio.Nursery, writes: int
) -> None:
    estate = Estate(tmp_path)
    await estate.daemon.start(nursery_of_daemons)
    for name in ("1", "2"):
        estate.put(f"{name}.jsonl", line(name) + line(f"{name}b"))
    estate.store.left = writes
    async with estate.running() as owner:
        await estate.until(lambda: len(owner.pool) == 4 or estate.store.broke.is_set())
        while not estate.store.broke.is_set() and estate.counters["batches_published"] < 2:
            estate.now += SECONDS
            signed = owner.pool.progress.signed
            await estate.until(
                lambda signed=signed: owner.pool.progress.published > signed or estate.store.broke.is_set()
            )
    estate.store.mend()
    estate.now += 5 * SECONDS
    async with estate.running() as owner:
        await estate.until(lambda: estate.counters["messages_taken"] >= 4)
        await estate.next_batch()
    found = estate.signed()
    assert {name: len(some) for name, some in found.items()} == {"1": 1, "1b": 1, "2": 1, "2b": 1}
    await estate.until_published(*sorted(estate.batches.numbers()))


async def test_weights_that_a_kill_left_without_a_batch_give_way_to_those_of_the_next(
    tmp_path: Path, nursery_of_daemons: trio.Nursery
) -> None:
    estate = Estate(tmp_path)
    await estate.daemon.start(nursery_of_daemons)
    estate.put("1.jsonl", line("1"))
    async with estate.running() as owner:
        await estate.until(lambda: len(owner.pool) == 1)
        await estate.next_batch()
    _, first = estate.batches.read(1)
    left = sign_again(estate.seed, first.table, first.table.whole.keys)
    (estate.batches.path / "2.table").write_bytes(encode(left.whole))
    estate.put("2.jsonl", "".join(line(f"2.{number}", f"storm and {number}") for number in range(9)))
    async with estate.running() as owner:
        await estate.until(lambda: len(owner.pool) == 9)
        await estate.next_batch()
    _, second = estate.batches.read(2)
    assert second.table.body.version == 2
    assert second.table.digest != left.digest
    await estate.until_published(1, 2)


async def test_what_was_signed_without_a_daemon_is_published_when_there_is_one(
    tmp_path: Path, nursery_of_daemons: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushcast_located.daemon_conversation.AGAIN", 0.01)
    estate = Estate(tmp_path)
    async with estate.running() as owner:
        for number in (1, 2, 3):
            estate.now += SECONDS
            await estate.until(lambda number=number: owner.pool.progress.signed == number)
        await estate.daemon.start(nursery_of_daemons)
        await estate.until(lambda: owner.pool.progress.published == 3)
    await estate.until_published(1, 2, 3)
    assert estate.batches.read(1)[1].batch.body.start == START - START % SECONDS


async def test_time_that_it_was_away_for_is_part_of_the_next_batch(
    tmp_path: Path, nursery_of_daemons: trio.Nursery
) -> None:
    estate = Estate(tmp_path)
    await estate.daemon.start(nursery_of_daemons)
    async with estate.running():
        await estate.next_batch()
    estate.now += 10 * SECONDS
    async with estate.running():
        await estate.until(lambda: estate.owner.pool.progress.published == 2)
    estate.signed()
    assert estate.batches.read(2)[1].batch.body.seconds == 10 * SECONDS


async def test_old_batches_go_once_they_are_published(
    tmp_path: Path, nursery_of_daemons: trio.Nursery
) -> None:
    estate = Estate(tmp_path)
    await estate.daemon.start(nursery_of_daemons)
    async with estate.running() as owner:
        for _ in range(3):
            await estate.next_batch()
        for number in (1, 2, 3):
            os.utime(estate.batches.path / f"{number}.batch", (0, 0))
        await estate.next_batch()
        await estate.until(lambda: estate.batches.oldest() in (3, 4))
        assert owner.pool.progress.signed == 4
    await estate.until_published(1, 2, 3, 4)


async def test_a_folder_of_batches_that_is_older_or_another_owners_ends_the_start(
    tmp_path: Path, nursery_of_daemons: trio.Nursery
) -> None:
    estate = Estate(tmp_path)
    await estate.daemon.start(nursery_of_daemons)
    async with estate.running():
        await estate.next_batch()
    mine, estate.seeds = estate.seeds, OwnerSeeds(Seed(bytes(32)))
    for told in ("another owner's", "batch 1 was signed"):
        with pytest.raises(BaseExceptionGroup) as raised:
            async with estate.running():
                pass
        (error,) = raised.value.exceptions
        assert isinstance(error, UsageError)
        assert told in str(error)
        estate.seeds = mine
        (estate.batches.path / "1.batch").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"input": OwnersInputSection()}, "says nothing"),
        ({"input": OwnersInputSection(lines="pipe")}, "input.lines: give an absolute path"),
        ({"key": "owner.key"}, "key: give an absolute path"),
        ({"daemon": OwnersDaemonSection(socket="s")}, "daemon.socket: give an absolute path"),
    ],
)
def test_settings_that_cannot_be_meant_are_told(given: dict[str, object], told: str) -> None:
    usual = {
        "feed": "/feed.link",
        "daemon": OwnersDaemonSection(socket="/s"),
        "input": OwnersInputSection(lines="-"),
    }
    OwnerSettings(**usual).check_own()  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=told):
        OwnerSettings(**usual | given).check_own()  # type: ignore[arg-type]
