"""A directory's doctor: what it finds of rosters, votes and the others, and what is said of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import trio
from authority_bench import SEEDS, AuthorityBench, Directory, authority_bench, sets
from directory_bench import CALENDAR, EPOCH, NETWORK, bench
from test_peers import linked
from told_heads import retold

from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.doctor import (
    examine_address,
    examine_alone,
    examine_beacon,
    examine_closed,
    examine_evidence,
    examine_faults,
    examine_one_of_several,
)
from hushcast_directory.server.kept_evidence import EVIDENCE
from hushcast_protocol.authorities.audit import called
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import Cast
from hushcast_protocol.authorities.beacon import DRAWN
from hushcast_protocol.authorities.evidence import Evidence
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.head_questions import Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    CertifiedHead,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.wire import encode
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import SqliteStore


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Return a state directory with a database in which nothing is."""
    store = SqliteStore(tmp_path / DATABASE)
    yield tmp_path
    store.close()


def by_check(findings: list[Finding]) -> dict[str, Finding]:
    found = {one.check: one for one in findings}
    assert len(found) == len(findings)
    assert all(one.advice or one.verdict == "good" for one in findings)
    return found


def examined(one: Directory, state: Path, first: int = 3) -> dict[str, Finding]:
    made, roll = one.bench, one.agreeing._roll
    now = one.env.now()
    epoch = CALENDAR.epoch(now)
    assert made is not None
    return by_check(examine_one_of_several(one.agreeing, state, roll.count(now), first, epoch))


def verdicts(found: dict[str, Finding]) -> dict[str, str]:
    return {name: one.verdict for name, one in found.items()}


async def settled(made: AuthorityBench, epochs: float = 3.2) -> Directory:
    await made.until(made.epoch + epochs)
    return made.directories[0]


# A directory alone


async def test_alone_it_tells_of_the_time_the_roster_and_relays() -> None:
    async with bench(relays=2, first_roster=3) as made:
        publishing = made.agreeing

        def found() -> dict[str, Finding]:
            known = made.roll.count(made.now)
            return by_check(examine_alone(publishing, known, 3, made.epoch))

        early = found()
        assert verdicts(early) == {"roster": "warning"}
        assert "2 of 3 relays" in early["roster"].found
        await made.relay(7)
        made.nursery.start_soon(made.keep_registered, 7)
        await made.sleep_until_epoch(made.epoch + 3)
        await trio.sleep(1)
        well = found()
        assert verdicts(well) == {"roster": "good", "relays": "good"}
        assert well["relays"].found == "3 listed"


async def test_alone_an_old_roster_and_a_wrong_clock_are_bad() -> None:
    async with bench(relays=1) as made:
        await made.sleep_until_epoch(made.epoch + 2)
        await made.stop()
        right = made.env.now
        made.env = dataclasses.replace(made.env, now=lambda: right() - 20 * EPOCH)
        await made.start()
        await trio.sleep(1)
        publishing = made.agreeing
        ill = by_check(examine_alone(publishing, 1, 1, CALENDAR.epoch(right()) + 5))
        assert (ill["time"].verdict, ill["roster"].verdict) == ("bad", "bad")
        assert "epochs old" in ill["roster"].found


# One of several


@pytest.mark.slow
async def test_of_several_that_are_well_all_is_good(state: Path) -> None:
    async with authority_bench(5, 3) as made:
        one = made.directories[0]
        early = examined(one, state, first=3)
        assert early["roster"].verdict == "warning"
        await settled(made)
        for each in made.directories:
            well = examined(each, state)
            assert set(verdicts(well).values()) == {"good"}, well
        well = examined(one, state)
        assert well["other directories"].found == "4 of 4 reached"
        assert well["votes"].found == f"counted for epoch {one.machine.chain.epoch}"
        assert well["relays"].found == "3 with a seat, 0 that wait"
        assert well["beacon"].found == "takes part"
        assert well["evidence"].found == "0 proofs kept"


@pytest.mark.slow
async def test_those_that_are_away_are_named_and_without_a_quorum_it_is_bad(state: Path) -> None:
    async with authority_bench(5, 3) as made:
        one = await settled(made)
        for number in (1, 2):
            await made.directories[number].kill()
        await made.until(made.epoch + 2.2)
        found = examined(one, state)
        away = found["other directories"]
        assert away.verdict == "warning"
        names = [called(number + 1, SEEDS[number].public()) for number in (1, 2)]
        assert away.found == f"2 of 4 reached, not {names[0]} and {names[1]}"
        assert (found["votes"].verdict, found["roster"].verdict) == ("good", "good")
        await made.directories[3].kill()
        await made.until(made.epoch + 3.2)
        ill = examined(one, state)
        assert verdicts(ill) | {"other directories": "bad", "roster": "bad"} == verdicts(ill)
        text = "".join(finding.found + finding.advice for finding in ill.values())
        assert all(member.address not in text for member in one.machine.chain.named().values())


@pytest.mark.slow
async def test_who_came_back_votes_again_and_is_told_that_it_does_not_yet(state: Path) -> None:
    async with authority_bench(5, 3) as made:
        one = await settled(made)
        await one.kill()
        await made.until(made.epoch + 2.4)
        await one.start()
        await trio.sleep(0.3 * EPOCH)
        assert examined(one, state)["votes"].verdict in ("warning", "good")
        back = made.epoch
        while examined(one, state)["votes"].verdict != "good":
            assert made.epoch <= back + 3
            await trio.sleep(EPOCH / 10)


@pytest.mark.slow
async def test_votes_that_nobody_hears_do_not_count(state: Path) -> None:
    """Others go on without it: it casts, alone, and what follows is not what they sign."""
    async with authority_bench(5, 3) as made:
        one = await settled(made)
        one.agreeing.peers.send = lambda to, frame: None  # type: ignore[method-assign]
        one.agreeing._exchange._tell = one.agreeing.peers.send
        await made.until(made.epoch + 3.4)
        found = examined(one, state)
        assert one.machine.chain.epoch == made.directories[1].machine.chain.epoch
        assert one.machine.kept.voted >= one.machine.chain.epoch
        assert found["votes"].verdict == "warning"
        assert "than follows from the votes here" in found["votes"].found


async def test_a_clock_in_doubt_and_another_address_are_bad(state: Path) -> None:
    async with authority_bench(3, 2) as made:
        one = await settled(made)
        await one.kill()
        now, elsewhere = made.env.now, AuthorityBench.address(99)
        one.env = made.env_at(lambda: now() - 20 * EPOCH)
        await one.start()
        one.agreeing.address = elsewhere
        await trio.sleep(EPOCH)
        found = examined(one, state)
        assert (found["address"].verdict, found["time"].verdict) == ("bad", "bad")
        assert elsewhere not in "".join(one.found + one.advice for one in found.values())


@pytest.mark.slow
async def test_a_fork_is_bad(state: Path) -> None:
    async with authority_bench(5, 3) as made:
        one = await settled(made)
        newest = one.machine.chain.state.newest
        assert newest is not None
        other = encode(retold(decode_head(newest.head), root=bytes(32)))
        accord = AssentBody(NETWORK.id, decode_head(other).epoch, head_digest(other))
        marks = tuple(IndexedSignature(place, assent_to(SEEDS[place], accord)) for place in range(3))
        channel = await linked(made, SEEDS[1])
        await channel.send(Heads((CertifiedHead(other, marks),)))
        await trio.sleep(1)
        found = examined(one, state)
        assert found["fork"].verdict == "bad"
        assert "votes" not in found


@pytest.mark.slow
async def test_who_comes_and_who_is_voted_out_are_told_before_and_after(state: Path) -> None:
    async with authority_bench(4, 3, relays=1) as made:
        one = await settled(made)
        gone, members = made.directories[3], sets(5, 3).members
        coming = Authorities.of((member for member in members if member.key != SEEDS[3].public()), 3)
        sitting = ConfiguredSet(sets(4, 3), coming, 1)
        for each in made.directories[:3]:
            each.agreeing.sit(sitting)
        fresh = Directory(made, SEEDS[4], sitting)
        await fresh.start()
        await made.until(made.epoch + 2.4)
        change = one.machine.chain.head.change if one.machine.chain.head is not None else None
        assert change is not None
        told = examined(fresh, state)["votes"]
        assert told.verdict == "warning"
        assert told.found == f"none yet: its set takes over in epoch {change.epoch}"
        told = examined(gone, state)["votes"]
        assert (told.verdict, f"others take over in epoch {change.epoch}" in told.found) == ("warning", True)
        well = examined(one, state)
        assert (well["votes"].verdict, well["other directories"].found) == ("good", "4 of 4 reached")
        await made.until(change.epoch + 2.2)
        assert examined(fresh, state)["votes"].verdict == "good"
        told = examined(gone, state)["votes"]
        assert (told.verdict, "none of the directories of now" in told.found) == ("bad", True)


# What is said of it


async def test_faults_and_the_beacon_name_it() -> None:
    async with authority_bench(3, 2) as made:
        one = await settled(made)
        head = one.machine.chain.head
        assert head is not None
        own, other = SEEDS[0].public(), SEEDS[1].public()
        named = retold(head, faults=(own, other))
        assert examine_faults(named, own).verdict == "bad"
        assert called(2, other) in examine_faults(retold(head, faults=(other,)), own).found
        draw = msgspec.structs.replace(inside_of(head).draw, left_out=(own,))
        assert examine_beacon(retold(head, draw=draw), own).verdict == "warning"
        assert examine_beacon(head, own).verdict == "good"
        none = msgspec.structs.replace(head, epoch=head.epoch - head.epoch % 24 + DRAWN)
        assert "none for the next day" in examine_beacon(none, own).found


def two_ballots(author: Seed) -> Evidence:
    bodies = [encode(Cast(NETWORK.id, 7, author.public(), bytes([one]) * 32)) for one in (1, 2)]
    first, second = (Signed(body, signature(author, SignaturePurpose.BALLOT, body)) for body in bodies)
    return Evidence(author.public(), first, second)


async def test_evidence_that_is_kept_is_told_with_whom_it_is_against(tmp_path: Path) -> None:
    keys = [seed.public() for seed in SEEDS[:3]]
    store = SqliteStore(tmp_path / DATABASE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        assert examine_evidence(tmp_path, keys[0], keys).verdict == "good"
        await store.write(Change(EVIDENCE, b"1", encode(two_ballots(SEEDS[1]))))
        found = examine_evidence(tmp_path, keys[0], keys)
        assert (found.verdict, found.found) == ("warning", f"1 proof kept, against {called(2, keys[1])} (1)")
        await store.write(Change(EVIDENCE, b"2", encode(two_ballots(SEEDS[0]))))
        assert examine_evidence(tmp_path, keys[0], keys).verdict == "bad"
        nursery.cancel_scope.cancel()
    store.close()
    (tmp_path / DATABASE).write_bytes(b"damaged" * 100)
    assert examine_evidence(tmp_path, keys[0], keys).verdict == "bad"


async def test_a_closed_network_tells_how_many_are_loaded() -> None:
    one, two = bytes([1]) * 32, bytes([2]) * 32
    assert examine_closed(None, [one]) == []
    (loaded,) = examine_closed(frozenset({one, two}), [one])
    assert (loaded.verdict, loaded.found) == ("good", "2 names loaded, 1 of them listed")
    (empty,) = examine_closed(frozenset(), [])
    assert empty.verdict == "warning"


async def test_the_address_that_others_know_is_compared() -> None:
    assert examine_address("a", "a").verdict == "good"
    assert examine_address("a", "b").verdict == "bad"
