"""A directory leaves out whom its list names, for as long as it says, and tells a relay so."""

from __future__ import annotations

import math
import resource
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from directory_bench import BEGIN, CALENDAR, NETWORK, bench, parcel_key, relay_seed

from hushcast_directory.server import expulsion_list
from hushcast_directory.server.expulsion_list import ExpulsionList, follow, read, write
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.expulsion import EXPELLED_DAYS, ExpelledRelay
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.base.roster import Descriptor, sign_descriptor
from hushcast_runtime.storage.store import MemoryStore

NOW = CALENDAR.epoch(BEGIN)


def name(number: int) -> bytes:
    return relay_seed(number).public()


async def test_who_is_expelled_falls_out_is_told_why_and_comes_back() -> None:
    async with bench(relays=5) as made:
        assert len(made.rosters()[-1].relays) == 5
        made.roll.expel([ExpelledRelay(name(1), made.epoch - 164)])
        with pytest.raises(Refusal, match=f"leaves the relay out until .* UTC, epoch {made.epoch + 4}"):
            await made.register(1)
        await made.sleep_until_epoch(made.epoch + 1)
        assert set(made.rosters()[-1].relays) == {name(number) for number in (0, 2, 3, 4)}
        await made.sleep_until_epoch(NOW + EXPELLED_DAYS * EPOCHS_A_DAY - 165)
        assert name(1) not in made.rosters()[-1].relays
        await made.sleep_until_epoch(made.epoch + 3)
        assert name(1) in made.rosters()[-1].relays


async def test_a_directory_expels_few_whatever_its_list_says() -> None:
    async with bench(relays=5) as made:
        made.roll.expel([ExpelledRelay(name(number), made.epoch) for number in range(5)])
        await made.sleep_until_epoch(made.epoch + 1)
        assert set(made.rosters()[-1].relays) == {name(number) for number in range(1, 5)}
        await made.sleep_until_epoch(made.epoch + 3)  # also when it has gone
        assert set(made.rosters()[-1].relays) == {name(number) for number in range(1, 5)}


async def test_an_authority_names_them_on_no_ballot_and_knows_them_all_the_same() -> None:
    """As long as the others list one, heads name its descriptor, and who serves heads needs it."""
    roll = Roll(NETWORK, Seed(bytes([250]) * 32), MemoryStore())
    for number in range(8):
        seed, now = relay_seed(number), int(BEGIN)
        address, key = memory_address(seed.public()), parcel_key(number).public()
        signed = sign_descriptor(seed, Descriptor(NETWORK.id, seed.public(), address, key, now, now + 180, 0))
        await roll.admit(roll.examine(signed, BEGIN), signed)
    seats = Listing(NOW, tuple(sorted((name(number), bytes(16), NOW) for number in range(8))), ())
    await roll.follow(seats)
    roll.expel([ExpelledRelay(name(3), NOW)])
    assert {relay for relay, *_ in roll.ballot(NOW + 1, math.inf, False)} == {
        name(number) for number in range(8) if number != 3
    }
    assert {relay for relay, *_ in roll.ballot(NOW + 4, math.inf, True)} == {
        name(number) for number in range(8) if number != 3
    }
    assert {held[0] for held in roll.held(BEGIN)} == {name(number) for number in range(8)}
    roll.examine(signed, BEGIN)
    with pytest.raises(Refusal, match="loses messages"):
        roll.refuse_expelled(name(3), BEGIN)
    roll.refuse_expelled(name(2), BEGIN)
    roll.expel(())
    roll.refuse_expelled(name(3), BEGIN)


async def test_a_list_is_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "expelled"
    assert read(file) == ()
    some = (
        ExpelledRelay(name(1), 240_000, "lost 5 of 10 probes, in 20 trials"),
        ExpelledRelay(name(2), 240_001),
    )
    write(file, some)
    assert read(file) == some
    assert [one.why for one in read(file)] == ["lost 5 of 10 probes, in 20 trials", ""]
    assert file.stat().st_mode & 0o777 == 0o600
    by_hand = f"\n# mine\n  {name(3).hex().upper()}   7 # why not\n"
    file.write_text(file.read_text() + by_hand)
    assert read(file) == (*some, ExpelledRelay(name(3), 7))
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"abc 7\n", "line 1: not the name"),
        (name(1).hex().encode() + b" 7\n" + name(1).hex().encode(), "line 2: not the name"),
        (name(1).hex().encode() + b" -7", "line 1: not the name"),
        (name(1).hex().encode() + b"7", "line 1: not the name"),
        (b"\xff\xfe", "not a text"),
        (b"#" * (expulsion_list.MAX_EXPELLED_FILE + 1), "over 4,194,304 bytes"),
    ],
)
async def test_a_list_that_says_something_else_is_refused(tmp_path: Path, text: bytes, why: str) -> None:
    file = tmp_path / "expelled"
    file.write_bytes(text)
    with pytest.raises(UsageError, match=why):
        read(file)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "folder")


async def test_a_list_is_taken_when_it_changes(tmp_path: Path) -> None:
    looked, taken = ExpulsionList(tmp_path / "expelled"), list[Sequence[ExpelledRelay]]()
    assert looked.changed() == ()
    assert looked.changed() is None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow, lambda: looked, taken.append, 10.0)
        await trio.sleep(25)
        assert taken == []
        write(looked.file, [ExpelledRelay(name(1), 7)])
        await trio.sleep(10)
        assert taken == [(ExpelledRelay(name(1), 7),)]
        looked.file.write_text("nobody\n")
        await trio.sleep(30)
        assert len(taken) == 1, "what cannot be used changes nothing"
        looked.file.unlink()
        await trio.sleep(30)
        assert taken[1:] == [()]
        nursery.cancel_scope.cancel()


async def test_a_list_that_could_not_be_opened_is_read_at_the_next_look(tmp_path: Path) -> None:
    """In a flood a directory may have no file to spare; the list that changed then counts all the same."""
    file = tmp_path / "expelled"
    write(file, [])
    looked = ExpulsionList(file)
    assert looked.changed() == ()
    mine = ExpelledRelay(bytes(32), 7, "")
    write(file, [mine])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most[1]))
    try:
        with pytest.raises(UsageError, match="Too many open files"):
            looked.changed()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
    assert looked.changed() == (mine,)
    file.write_text("nobody\n")
    with pytest.raises(UsageError, match="line 1"):
        looked.changed()
    assert looked.changed() is None, "that was told"
