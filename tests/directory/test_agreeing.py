"""One authority's disk, clock, address and settings: what is read back, what it says where it cannot vote."""

from __future__ import annotations

from collections import Counter

import pytest
import trio
from authority_bench import SEEDS, authority_bench, sets
from directory_bench import EPOCH, NETWORK
from test_peers import linked
from told_heads import retold

from hushcast_directory.server import archive, authority_driver
from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.kept_evidence import EVIDENCE, read_evidence
from hushcast_directory.server.settings import DirectorySettings
from hushcast_protocol.authorities.directory_requests import Fetch, HeadAnswer
from hushcast_protocol.authorities.evidence import Fork, check_fork
from hushcast_protocol.authorities.head_questions import Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    CertifiedHead,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.base.wire import encode
from hushcast_runtime.processes.config import parse_settings


@pytest.mark.slow
async def test_two_heads_of_one_epoch_stop_it_and_are_shown_to_all() -> None:
    async with authority_bench() as made:
        await made.until(made.epoch + 2.2)
        one = made.directories[0]
        newest = one.machine.chain.state.newest
        assert newest is not None
        other = encode(retold(decode_head(newest.head), root=bytes(32)))
        accord = AssentBody(NETWORK.id, decode_head(other).epoch, head_digest(other))
        marks = tuple(IndexedSignature(place, assent_to(SEEDS[place], accord)) for place in range(3))
        channel = await linked(made, SEEDS[1])
        await channel.send(Heads((CertifiedHead(other, marks),)))
        await trio.sleep(1)
        assert one.agreeing.problem is not None
        assert "forked" in one.agreeing.problem
        last = one.machine.chain.epoch
        for _ in range(2):  # and after a restart
            shown = one.agreeing.answer(Fetch(None))
            assert isinstance(shown, HeadAnswer)
            check_fork(Fork(*shown.heads[-2:]), NETWORK.id, sets(5, 3))
            assert shown.seats == ()
            await one.kill()
            await one.start()
            await made.until(made.epoch + 1.2)
        assert one.machine.chain.epoch == last
        accused = await made.accused(one)
        assert accused
        assert accused <= {SEEDS[place].public() for place in range(3)}
        # The others heard of it by the one that stopped.
        assert all(each.machine.chain.state.fork is not None for each in made.directories)


@pytest.mark.slow
async def test_what_it_serves_outlives_a_restart_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "HEADS_KEPT", 3)
    async with authority_bench(3, 2) as made:
        await made.until(made.epoch + 7)
        one = made.directories[0]
        before = [one.agreeing.answer(Fetch(after)) for after in (None, made.epoch - 10, made.epoch - 2)]
        assert len(one.agreeing._archive.epochs) == 3
        await one.kill()
        for kind, most in (("agreed", 3), ("listing", 4), ("authority", 1)):
            assert 0 < len(await one.store.scan(kind)) <= most
        await one.start()
        await trio.sleep(0.1)
        epoch = made.epoch
        assert [one.agreeing.answer(Fetch(after)) for after in (None, epoch - 10, epoch - 2)] == before
        newest, oldest, later = before
        assert isinstance(newest, HeadAnswer)
        assert isinstance(oldest, HeadAnswer)
        assert isinstance(later, HeadAnswer)
        assert (newest.more, oldest.more, later.more) == (False, True, True)
        assert decode_head(oldest.heads[-1].head).epoch == epoch - 2


@pytest.mark.slow
async def test_a_head_is_served_once_all_its_descriptors_are_there() -> None:
    """One that was away gets the head, its listing and the descriptors; killed in between it asks again."""
    async with authority_bench(5, 3) as made:
        await made.until(made.epoch + 2.2)
        away = made.directories[0]
        await away.kill()
        await made.relay(7)
        await made.register(7)
        away.store = type(away.store)()  # and it lost its disk; a real one would take another key
        await made.until(made.epoch + 1.95)
        await away.start()
        await made.until(made.epoch + 2.2)
        assert away.head is not None
        assert away.head == made.directories[1].head
        assert away.listing == made.directories[1].listing
        assert len(away.listing.seats) == 4


@pytest.mark.slow
async def test_evidence_is_bounded_for_each_that_it_is_against(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lies in every epoch leaves room for what another is found out to have said."""
    monkeypatch.setattr(authority_driver, "MAX_EVIDENCE", 2)
    async with authority_bench(faulty=2, seed=3) as made:
        await made.until(made.epoch + 12)
        for one in made.directories:
            kept = Counter(read_evidence(value).accused for _, value in await one.store.scan(EVIDENCE))
            assert max(kept.values()) == 2
            assert len(kept) == 2


@pytest.mark.slow
async def test_one_whose_clock_is_wrong_does_not_vote() -> None:
    async with authority_bench(3, 2) as made:
        await made.until(made.epoch + 2.2)
        one = made.directories[0]
        await one.kill()
        now = made.env.now
        one.env = made.env_at(lambda: now() - 20 * EPOCH)
        await one.start()
        await made.until(made.epoch + 3)
        voted = one.machine.kept.voted
        assert one.agreeing.problem is not None
        assert "clock" in one.agreeing.problem
        assert all(each.head and each.head.epoch == made.epoch for each in made.directories[1:])
        assert voted < made.epoch - 1
        await one.kill()
        one.env = made.env
        await one.start()
        await made.until(made.epoch + 2.2)
        assert one.machine.kept.voted == made.epoch
        assert one.agreeing.problem is None


async def test_one_that_others_look_for_elsewhere_says_so() -> None:
    async with authority_bench(3, 2) as made:
        await trio.sleep(1)
        one = made.directories[0]
        assert one.agreeing.problem is None
        one.agreeing.address = made.address(1)
        assert "another address" in str(one.agreeing.problem)


# Settings

AGREED = """members = [{key = "KEY", address = "127.0.0.1:1"}]
[authorities.next]
quorum = 1
members = [{key = "KEY", address = "127.0.0.1:1"}]
"""
BEGIN, NAMED = 'state = "/s"\n', '[network]\nname = "n"\n'
NEXT = '\n[authorities.next]\nquorum = 1\n[[authorities.next.members]]\nkey = "{}"\naddress = "127.0.0.1:1"\n'


def written(*members: str, quorum: int = 2, more: str = "") -> DirectorySettings:
    entry = '\n[[authorities.members]]\nkey = "{}"\naddress = "127.0.0.1:7411"\n'
    listed = "".join(entry.format(key) for key in members)
    text = f'{BEGIN}transport = "tcp"\n{NAMED}[authorities]\nquorum = {quorum}{listed}{more}'
    return parse_settings(text.encode(), "file", DirectorySettings)


async def test_settings_become_a_set() -> None:
    keys = [seed.public() for seed in SEEDS[:3]]
    rules = "\n[authorities.admission]\nnewcomers = 20\ngrowth = 20\nage = true\nwork = 8\n"
    sitting = written(*(key.hex() for key in reversed(keys)), more=rules).sitting(keys[0])
    assert sitting is not None
    assert sitting.authorities.keys == tuple(keys)
    assert sitting.authorities.admission.cap(2000) == 40
    assert sitting == ConfiguredSet(sitting.authorities, None, 1)
    assert sitting.address_of(keys[1]) == "127.0.0.1:7411"
    assert sitting.address_of(bytes(32)) is None
    joining = written(*(key.hex() for key in keys), more=NEXT.format(SEEDS[5].public().hex()))
    later = joining.sitting(SEEDS[5].public())
    assert later is not None
    assert later.following is not None
    assert later.following.keys == (SEEDS[5].public(),)
    alone = parse_settings(f"{BEGIN}{NAMED}".encode(), "file", DirectorySettings)
    assert alone.sitting(keys[0]) is None


@pytest.mark.parametrize(
    ("profile", "size", "agreed"),
    [
        ("hardened", "", SHARD_SIZE),
        ("hardened", "shard_size = 0\n", 0),
        ("hardened", "shard_size = 4\n", 4),
        ("paper", "", 0),
        ("paper", "shard_size = 0\n", 0),
        ("hardened", "shard_size = 3\n", "4 or more"),
        ("hardened", "shard_size = 501\n", "500"),
        ("paper", "shard_size = 4\n", "has no shards"),
    ],
)
async def test_the_size_of_shards_is_of_the_set_and_of_the_profile(
    profile: str, size: str, agreed: int | str
) -> None:
    key = SEEDS[0].public()
    member = f'[[authorities.members]]\nkey = "{key.hex()}"\naddress = "127.0.0.1:1"\n'
    text = (
        f'{BEGIN}transport = "tcp"\n{NAMED}profile = "{profile}"\n[authorities]\nquorum = 1\n{size}{member}'
    )
    if isinstance(agreed, str):
        with pytest.raises(UsageError, match=agreed):
            parse_settings(text.encode(), "file", DirectorySettings)
        return
    sitting = parse_settings(text.encode(), "file", DirectorySettings).sitting(key)
    assert sitting is not None
    assert sitting.authorities.shard_size == agreed


@pytest.mark.parametrize(
    ("profile", "said", "agreed"),
    [
        ("hardened", "", NOTHING_KEPT),
        ("hardened", "keepers = 6\n", KeepingRule(6, 14)),
        ("hardened", "keepers = 2\nkept_days = 3\n", KeepingRule(2, 3)),
        ("paper", "", NOTHING_KEPT),
        ("hardened", "keepers = 7\n", "6"),
        ("hardened", "keepers = 1\nkept_days = 15\n", "14"),
        ("hardened", "keepers = 1\nkept_days = 0\n", "1"),
        ("paper", "keepers = 1\n", "no relay keeps"),
    ],
)
async def test_what_is_kept_is_a_rule_of_the_set(profile: str, said: str, agreed: KeepingRule | str) -> None:
    key = SEEDS[0].public()
    member = f'[[authorities.members]]\nkey = "{key.hex()}"\naddress = "127.0.0.1:1"\n'
    text = (
        f'{BEGIN}transport = "tcp"\n{NAMED}profile = "{profile}"\n[authorities]\nquorum = 1\n{said}{member}'
    )
    if isinstance(agreed, str):
        with pytest.raises(UsageError, match=agreed):
            parse_settings(text.encode(), "file", DirectorySettings)
        return
    sitting = parse_settings(text.encode(), "file", DirectorySettings).sitting(key)
    assert sitting is not None
    assert sitting.authorities.keeping == agreed


def test_where_several_directories_agree_relays_keep_unless_they_say_that_none_does() -> None:
    keys = [seed.public().hex() for seed in SEEDS[:3]]
    sitting = written(*keys).sitting(SEEDS[0].public())
    assert sitting is not None
    assert sitting.authorities.keeping == KeepingRule(6, 14)
    members = ", ".join(f'{{key = "{key}", address = "127.0.0.1:{n + 1}"}}' for n, key in enumerate(keys))
    for said, profile in (("keepers = 0\n", "hardened"), ("", "paper")):
        text = (
            f'{BEGIN}transport = "tcp"\n{NAMED}profile = "{profile}"\n[authorities]\nquorum = 2\n{said}'
            f"members = [{members}]\n"
        )
        sitting = parse_settings(text.encode(), "file", DirectorySettings).sitting(SEEDS[0].public())
        assert sitting is not None
        assert sitting.authorities.keeping == NOTHING_KEPT


async def test_settings_that_do_not_hold_say_what_is_wrong() -> None:
    keys = [seed.public().hex() for seed in SEEDS[:3]]
    with pytest.raises(UsageError, match="own key is not among them"):
        written(*keys).sitting(SEEDS[4].public())
    for members, quorum, reason in (
        (keys, 1, "more than half"),
        (keys, 4, "more than half"),
        ((keys[0], keys[0]), 2, "same key"),
        ((keys[0][:10],), 1, "key"),
    ):
        with pytest.raises(UsageError, match=reason):
            written(*members, quorum=quorum)
    with pytest.raises(UsageError, match=r"admission\.growth: without newcomers all who come are seated"):
        written(*keys, more="\n[authorities.admission]\ngrowth = 20\n")
    for more in ("", "next."):
        short = f"{BEGIN}transport = 'tcp'\n{NAMED}epoch_seconds = 600\n[authorities]\nquorum = 1\n{AGREED}"
        text = f"{short}[authorities.{more}cover]\nround = 601\n"
        with pytest.raises(UsageError, match=rf"authorities\.{more}cover\.round: a round is no longer"):
            parse_settings(text.replace("KEY", keys[0]).encode(), "file", DirectorySettings)
    listed = f'[authorities]\nquorum = 1\nmembers = [{{key = "{keys[0]}", address = "127.0.0.1:1"}}]'
    with pytest.raises(UsageError, match="onion"):
        parse_settings(f"{BEGIN}{NAMED}{listed}".encode(), "file", DirectorySettings)
