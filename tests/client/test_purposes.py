"""Purposes in programs: what is published for some opens for those, and is shown to nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from purpose_files import EPOCH, ISSUER, issued, write_files
from world import World

import hushcast
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD


def keys(folder: Path, *granted: str, epochs: range = range(EPOCH, EPOCH + 2)) -> hushcast.PurposeKeys:
    files = write_files(folder, granted, issued(epochs=epochs))
    return hushcast.read_purpose_keys(files.vocabulary, reader_key=files.reader_key, grants=files.grants)


async def test_what_is_for_another_purpose_is_told_and_counted_and_never_shown(
    world: World, tmp_path: Path
) -> None:
    async def program() -> None:
        fleet = keys(tmp_path / "k", "operations/billing")
        reading = fleet.read_for("operations/billing")
        async with hushcast.connect(world.socket) as daemon:
            async with daemon.subscribe("t", purpose=reading) as messages:
                await daemon.publish("t", "all", purposes=fleet.allow())
                marketing, tags = fleet.allow(["marketing"]).seal(b"marketing", "t")
                _, wanted = fleet.allow(["operations"]).seal(b"", "t")
                # Relays withhold what has its own tags; this has a reader's.
                await daemon.publish("t", "withheld", purposes=fleet.allow(["marketing"]))
                for payload in (marketing, b"in the clear"):
                    await daemon.enqueue("t", payload, tags=wanted)
                await daemon.publish("t", "operations", purposes=fleet.allow(["operations"], ["marketing"]))
                events = [await messages.next_event(20) for _ in range(4)]
                told = [getattr(one, "text", getattr(one, "problem", None)) for one in events]
                assert told == ["all", "not granted", "form", "operations"]
                assert messages.unopened == 2
                assert tags.isdisjoint(wanted)
            assert (await daemon.subscriptions())[0].acknowledged == 4
            assert await daemon.unsubscribe("t", where=reading.where())

    await world.run(program)


async def test_what_does_not_open_is_acknowledged_with_what_does(world: World, tmp_path: Path) -> None:
    async def program() -> list[str]:
        fleet = keys(tmp_path / "k", "operations")
        found = []
        for _ in range(2):
            async with (
                hushcast.connect(world.socket) as daemon,
                daemon.subscribe("t", purpose=fleet.read_for("operations")) as messages,
            ):
                if not found:
                    _, tags = fleet.allow(["operations"]).seal(b"", "t")
                    await daemon.enqueue("t", b"clear", tags=tags)
                await daemon.publish("t", str(len(found)), purposes=fleet.allow(["operations"]))
                found.append((await anext(messages)).text)
        return found

    assert await world.run(program) == ["0", "1"]


@pytest.mark.parametrize("backend", ["trio"])
async def test_scripts_do_the_same(world: World, tmp_path: Path) -> None:
    fleet = keys(tmp_path / "k", "operations")

    def script() -> tuple[str, int]:
        reading = fleet.read_for("operations")
        with (
            hushcast.connect_sync(world.socket) as daemon,
            daemon.subscribe("t", purpose=reading) as messages,
        ):
            daemon.publish("t", "1", purposes=fleet.allow(["operations"]))
            daemon.enqueue("t", "2", purposes=fleet.allow())
            first, _ = next(iter(messages)), next(iter(messages))
            return first.text, messages.unopened

    assert await trio.to_thread.run_sync(script) == ("1", 0)


def test_who_was_not_granted_a_purpose_hears_it_before_anything_is_asked_for(tmp_path: Path) -> None:
    fleet = keys(tmp_path / "k", "operations/billing")
    assert fleet.granted == ("operations/billing",)
    for purpose, told in (
        ("operations", "no grant is for operations or a purpose above it: grants are held for operations/b"),
        ("billing", "did you mean operations/billing"),
    ):
        with pytest.raises(hushcast.UsageError, match=told):
            fleet.read_for(purpose)
    with pytest.raises(hushcast.UsageError, match="no grant is held"):
        keys(tmp_path / "w").read_for("operations")
    with pytest.raises(hushcast.UsageError, match="not in the vocabulary"):
        fleet.allow(["ads"])


def test_a_grant_for_what_is_above_opens_what_is_for_all_below(tmp_path: Path) -> None:
    fleet = keys(tmp_path / "k", "operations", "marketing")
    billing = fleet.read_for("operations/billing")
    for allowed, but_not, opens in (
        (["operations"], [], True),
        (["operations"], ["operations/routing"], False),
        (["operations/billing"], [], False),
        (["marketing"], [], False),
        ([], [], False),
    ):
        sealed, _ = fleet.allow(allowed, but_not).seal(b"x", "t")
        assert isinstance(billing.open(sealed), str) != opens


def test_keys_that_are_over_seal_nothing_and_say_so(tmp_path: Path) -> None:
    old = keys(tmp_path / "k", "operations", epochs=range(EPOCH - 2, EPOCH))
    with pytest.raises(hushcast.Refusal, match="last epoch is over"):
        old.allow().seal(b"x", "t")
    assert "last epoch is over" in str(old.read_for("operations").problem)
    assert keys(tmp_path / "n", "operations").read_for("operations").problem is None


def test_what_is_too_large_when_it_is_sealed_is_refused_with_the_size_that_fits(tmp_path: Path) -> None:
    allowed = keys(tmp_path / "k").allow(["operations"])
    with pytest.raises(hushcast.Refusal, match="too large") as found:
        allowed.seal(bytes(MAX_PAYLOAD), "t")
    most = int(str(found.value).split(" bytes")[0].rpartition(" ")[2])
    assert len(allowed.seal(bytes(most), "t")[0]) == MAX_PAYLOAD


def test_another_issuers_vocabulary_is_refused(tmp_path: Path) -> None:
    files = write_files(tmp_path / "k", [])
    assert hushcast.read_purpose_keys(files.vocabulary, issuer=ISSUER.public().hex()).granted == ()
    for issuer, told in (("00" * 32, "another issuer"), ("x", "64 hexadecimal digits")):
        with pytest.raises(hushcast.UsageError, match=told):
            hushcast.read_purpose_keys(files.vocabulary, issuer=issuer)
    with pytest.raises(hushcast.UsageError, match="sealed to a key"):
        hushcast.read_purpose_keys(files.vocabulary, grants=[files.vocabulary])
