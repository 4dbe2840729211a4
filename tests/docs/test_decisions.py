"""Decisions are listed in their order, and those that hold for less than they did say so in both places."""

from __future__ import annotations

import re

from pages import ROOT

_FOLDER = ROOT / "docs" / "decisions"
_LINE = re.compile(r"^(\d+)\. \[(.+)\]\(([\w-]+\.md)\)(?: \((extended|replaced|no longer holds)\b.*\))?$")
_MARK = re.compile(r"\*(Extended|Replaced|No longer holds)\b")


def test_the_list_has_every_decision_and_its_mark() -> None:
    lines = (_FOLDER / "README.md").read_text().splitlines()
    listed = [found for line in lines if line[:1].isdigit() and (found := _LINE.match(line))]
    files = sorted(_FOLDER.glob("0*.md"))
    assert [file.name for file in files] == [line[3] for line in listed]
    for number, (file, line) in enumerate(zip(files, listed, strict=True), start=1):
        title, _, second, *_ = file.read_text().splitlines()
        assert int(line[1]) == number
        assert title == f"# {number}. {line[2]}"
        mark = _MARK.match(second)
        assert (mark[1].lower() if mark else None) == line[4], file.name
