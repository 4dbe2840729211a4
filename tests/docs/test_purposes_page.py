"""What the page on purposes shows is what the commands do with what it shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from pages import ROOT, blocks

from hushcast_cli.main import run

BLOCKS = blocks(ROOT / "docs" / "purposes.md")


def shown(beginning: str) -> str:
    """Return the page's block that begins like this."""
    (found,) = [block.text for block in BLOCKS if block.text.startswith(beginning)]
    return found


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the files of the page where it is followed."""
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_text(shown('{"vocabulary"'))
    Path("questions.jsonl").write_text(shown('{"topic"'))
    Path("purposes.txt").write_text(shown("operations/billing\n"))


def followed(beginning: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Type a block's commands, and return what each printed."""
    told: list[str] = []
    for line in shown(f"$ {beginning}").splitlines():
        command = line.removeprefix("$ ").removeprefix('READER="$(').removesuffix(')"')
        words = shlex.split(command.replace("$READER", told[0].strip() if told else ""))
        assert run(words[1:]) == 0
        told.append(capfd.readouterr().out)
    return told


def test_rules_are_tried(capfd: pytest.CaptureFixture[str]) -> None:
    decided, effective = followed("hushcast lab purpose decide", capfd)
    assert decided == shown("allowed ")
    assert effective == "operations\noperations/billing\n"


def test_a_vocabulary_of_ones_own(capfd: pytest.CaptureFixture[str]) -> None:
    shipped, own = followed("hushcast lab purpose vocabulary", capfd)
    assert len(shipped.splitlines()) == 95
    assert own.split() == [
        *("marketing", "individualized", "newsletter"),
        *("operations", "billing", "routing", "research"),
    ]


def test_five_commands(capfd: pytest.CaptureFixture[str]) -> None:
    told = followed('READER="$(hushcast purpose key new', capfd)
    assert len(told) == 5
    assert told[3].startswith("fleet/grants/1.grant: operations, from ")
    assert told[4].startswith("grant 1 is withdrawn")
