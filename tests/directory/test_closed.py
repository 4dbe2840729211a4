"""A closed network: the directory lists those whose names are in a file, and nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from directory_bench import bench, relay_seed

from hushcast_directory.server import closed_network
from hushcast_directory.server.closed_network import read_names
from hushcast_protocol.base.errors import Refusal, UsageError


def name(number: int) -> bytes:
    return relay_seed(number).public()


async def test_only_those_on_the_list_are_taken() -> None:
    async with bench(first_roster=1) as made:
        made.roll.confine(frozenset({name(1)}))
        for number in (1, 2):
            await made.relay(number)
        await made.register(1)
        with pytest.raises(Refusal, match="closed"):
            await made.register(2)
        made.roll.confine(frozenset({name(1), name(2)}))
        await made.register(2)
        made.roll.confine(None)
        await made.relay(3)
        await made.register(3)


async def test_who_is_struck_off_falls_out_of_the_next_roster() -> None:
    """Also where most are: they are not taken for relays that a directory's absence kept away."""
    async with bench(first_roster=3) as made:
        for number in range(3):
            await made.relay(number)
            await made.register(number)
        await trio.sleep(1)
        assert [set(roster.relays) for roster in made.rosters()] == [{name(0), name(1), name(2)}]
        made.roll.confine(frozenset({name(1)}))
        with pytest.raises(Refusal, match="closed"):
            await made.register(2)
        await made.sleep_until_epoch(made.epoch + 1)
        assert [set(roster.relays) for roster in made.rosters()[1:]] == [{name(1)}]


async def test_a_file_of_names(tmp_path: Path) -> None:
    file = tmp_path / "relays"
    file.write_text(
        f"# ours\n\n{name(1).hex()}  # in the cellar\n  {name(2).hex().upper()}\n{name(1).hex()}\n"
    )
    assert read_names(file) == {name(1), name(2)}
    file.write_text("")
    assert read_names(file) == frozenset()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"abc\n", "line 1: not the name"),
        (name(1).hex().encode() + b"\n" + name(1).hex().encode()[:-2], "line 2: not the name"),
        (name(1).hex().encode() + b"00", "line 1: not the name"),
        (b" ".join([name(1).hex().encode()] * 2), "line 1: not the name"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
async def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: bytes, why: str) -> None:
    file = tmp_path / "relays"
    file.write_bytes(text)
    with pytest.raises(UsageError, match=why):
        read_names(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_names(tmp_path / "none")


async def test_a_list_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "relays"
    file.write_text("".join(f"{name(number).hex()}\n" for number in range(3)))
    monkeypatch.setattr(closed_network, "MAX_SEATED", 2)
    with pytest.raises(UsageError, match="lists 3 relays"):
        read_names(file)
    monkeypatch.setattr(closed_network, "MAX_NAMES_FILE", 100)
    with pytest.raises(UsageError, match="over 100 bytes"):
        read_names(file)
