"""Every kind that links carry has the bytes that it had: another layout needs another wire."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from hushcast_protocol.base.versions.wires import WIRES
from hushcast_protocol.base.wire import encode


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    return importlib.import_module("golden_kinds")


def test_every_kind_has_the_bytes_that_were_kept(golden: ModuleType) -> None:
    made, kept = dict(golden.examples()), golden.kept()
    assert made.keys() == kept.keys(), "run python tools/golden_kinds.py"
    changed = [name for name, value in made.items() if encode(value) != kept[name]]
    assert changed == [], "these need the next wire; while no release has this one: --anew"
    for name, value in made.items():
        assert msgspec.msgpack.decode(kept[name], type=type(value)) == value


def test_examples_tell_fields_apart(golden: ModuleType) -> None:
    """Else two fields that change places would not be seen."""
    made = dict(golden.examples())
    drop, entry = made["overlay Forward"].message, made["roster Descriptor"]
    assert len(set(drop.tokens)) == len(drop.tokens) == 2
    assert entry.issued < entry.expires
    assert entry.relay != entry.parcel_key != entry.network


def test_what_is_kept_is_not_changed_unasked(
    golden: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = golden.KEPT.read_text()
    first, second, *others = kept.splitlines(keepends=True)
    name, _, data = second.rpartition(" ")
    place = tmp_path / "kinds.txt"
    monkeypatch.setattr(golden, "KEPT", place)

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["golden_kinds.py", *arguments])
        return int(golden.main())

    place.write_text("".join([first, *others]))
    assert run("--check") == 1
    assert place.read_text() != kept
    assert run() == 0
    assert place.read_text() == kept
    place.write_text("".join([first, f"{name} ff{data[2:]}", *others]))
    assert run() == run("--check") == 1
    assert f"{name} is not as wire 1 has it" in capsys.readouterr().err
    assert run("--anew") == 0
    assert place.read_text() == kept
    assert run("--check") == 0


def test_no_two_kinds_have_one_tag() -> None:
    """A kind is known by its tag alone, in whatever room it is said: translations go by that."""
    by_tag: dict[str, type] = {}
    for kinds in importlib.import_module("protocol_layouts").SECTIONS.values():
        for kind in kinds:
            tag = kind.__struct_config__.tag
            assert tag is None or by_tag.setdefault(tag, kind) is kind, tag
    assert len(by_tag) > 100


def test_what_each_wire_that_is_spoken_said_is_still_understood(golden: ModuleType) -> None:
    sections = golden.SECTIONS.items()
    kinds = {f"{section} {kind.__name__}": kind for section, all_of in sections for kind in all_of}
    for number in WIRES.rows:
        lines = (golden.KEPT.parents[1] / f"wire-{number}" / "kinds.txt").read_text().splitlines()
        for name, _, data in (line.rpartition(" ") for line in lines):
            said = WIRES.translation(number).up(bytes.fromhex(data))
            if said is not None and name in kinds:
                msgspec.msgpack.decode(said, type=kinds[name])
