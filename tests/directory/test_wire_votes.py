"""Directories vote for another wire: a quorum has it announced, a minority neither moves nor holds it up."""

from __future__ import annotations

from dataclasses import replace

import drilled_wire
import msgspec
import pytest
from authority_bench import AuthorityBench, Directory, authority_bench, sets
from directory_bench import relay_seed
from drilled_wire import mix_releases, release

from hushcast_directory.server.configured_set import ConfiguredSet, SetOfOne
from hushcast_directory.server.settings import DirectorySettings
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import Head
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.versions import wires
from hushcast_runtime.processes.config import parse_settings
from hushcast_runtime.storage.store import MemoryStore

BOTH = drilled_wire.BOTH.spoken


def of_wire(number: int) -> Authorities:
    return msgspec.structs.replace(sets(3, 2), wire=number)


def ask(directory: Directory, wire: int | None) -> None:
    directory.sitting = replace(directory.sitting, wire=wire)
    directory.agreeing.sit(directory.sitting)


def newest(directory: Directory) -> Head:
    head = directory.machine.chain.head
    assert head is not None
    return head


async def runs(made: AuthorityBench, epochs: int, heads: dict[int, int], seated: dict[int, int]) -> None:
    """Let some epochs pass; note of each head, of which all that run have the same, wire and relays."""
    for _ in range(epochs):
        await made.until(made.epoch + 1.05)
        (shown,) = made.heads(made.epoch)
        running = next(one for one in made.directories if one.server is not None)
        assert shown
        heads[made.epoch] = newest(running).authorities.wire
        seated[made.epoch] = inside_of(newest(running)).count


@pytest.mark.slow
async def test_a_quorum_has_a_wire_announced_a_day_ahead_and_a_minority_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with authority_bench(5, 3) as made:
        await made.until(made.epoch + 2)
        monkeypatch.setattr(wires, "table", lambda: drilled_wire.BOTH)
        made.speaks = {0: BOTH, 1: BOTH}  # and the third lags behind
        first, second, third, *_ = made.directories
        heads: dict[int, int] = {}
        seated: dict[int, int] = {}
        for directory in (first, second):
            ask(directory, 2)
        await runs(made, 4, heads, seated)  # three have it announced within two, below
        assert newest(third).change is None, "two of five"
        ask(third, 2)
        await runs(made, 2, heads, seated)
        change = newest(third).change
        assert change is not None
        assert (change.authorities.wire, change.epoch % EPOCHS_A_DAY) == (2, 0)
        assert change.epoch - made.epoch >= EPOCHS_A_DAY - 2
        assert len(made.names_listed()) == 3, "it is spoken to as long as the network speaks what it does"
        await made.directories[4].kill()  # of a release before, say: as good as away
        await runs(made, change.epoch + 3 - made.epoch, heads, seated)
        assert {wire for epoch, wire in heads.items() if epoch < change.epoch} == {1}
        assert {wire for epoch, wire in heads.items() if epoch >= change.epoch} == {2}
        assert made.names_listed() == {relay_seed(0).public(), relay_seed(1).public()}
        assert seated[change.epoch] == seated[max(heads)] == 2, "it lost its seat as the change came"
        await made.directories[4].start()
        await made.until(made.epoch + 2.1)
        assert newest(made.directories[4]).authorities.wire == 2, "it follows when it is back"
        assert sorted(heads) == list(range(min(heads), max(heads) + 1)), "a head in every epoch"


@pytest.mark.slow
async def test_directories_are_upgraded_one_by_one_beside_one_that_lies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of five one lies all along, and one is upgraded long after the change: a head in every epoch."""
    mix_releases(monkeypatch)
    with release(drilled_wire.BOTH):  # of which are who lies, and the relays
        bench = authority_bench(5, 3, faulty=1, seed=3)
        made = await bench.__aenter__()
    made.speaks = dict.fromkeys(range(3), BOTH)
    for directory in made.directories:  # before anything of the bench runs
        directory.sitting = replace(directory.sitting, authorities=sets(5, 3))
    try:
        for directory in made.directories:
            await directory.kill()
            directory.store = MemoryStore()
            await directory.start()
        await made.until(made.epoch + 2)
        *upgraded, last = made.directories
        epochs = []
        for directory in upgraded:
            await directory.kill()
            with release(drilled_wire.BOTH):
                await directory.start()
            ask(directory, 2)
            for _ in range(3):
                await made.until(made.epoch + 1.05)
                epochs.append(made.epoch)
        change = newest(last).change
        assert change is not None, "three of five"
        assert change.authorities.wire == 2
        while made.epoch < change.epoch + 4:
            await made.until(made.epoch + 1.05)
            epochs.append(made.epoch)
        with release(drilled_wire.BOTH):
            for epoch in epochs:
                assert len(made.heads(epoch)) == 1, "one, in every epoch"
            head = newest(upgraded[0])
            assert (head.epoch, head.authorities.wire) == (made.epoch, 2)
            assert head.inside.startswith(b"\x98\xa8inside/2")
            assert inside_of(head).count == 3
        assert newest(last).authorities.wire == 2, "it follows what it cannot read"
        await last.kill()
        with release(drilled_wire.BOTH):
            await last.start()
            await made.until(made.epoch + 2.1)
            assert newest(last).epoch == made.epoch
    finally:
        await bench.__aexit__(None, None, None)


def test_one_step_is_voted_for_at_a_time_and_with_what_else_is_voted_for() -> None:
    sitting = ConfiguredSet(of_wire(1), None, wire=4)
    voted = sitting.voted(of_wire(1), of_wire(1))
    assert voted is not None
    assert voted.wire == 2
    back = replace(sitting, wire=1).voted(of_wire(3), of_wire(3))
    assert back is not None
    assert back.wire == 2
    assert replace(sitting, wire=3).voted(of_wire(3), of_wire(3)) is None
    assert replace(sitting, wire=None).voted(of_wire(3), of_wire(3)) is None
    assert SetOfOne().voted(of_wire(3), of_wire(3)) is None


def test_a_wire_that_is_not_spoken_is_not_asked_for() -> None:
    def settings(wire: int) -> DirectorySettings:
        text = f'state = "/s"\nwire = {wire}\n[network]\nname = "n"\n'
        return parse_settings(text.encode(), "file", DirectorySettings)

    assert settings(1).wire == 1
    with pytest.raises(UsageError, match="file: wire: this program speaks wire 1: write that, or leave"):
        settings(2)
    with pytest.raises(UsageError, match="wire"):
        settings(0)
