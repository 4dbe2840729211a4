"""The front page is short and shows its picture; doors lead to all pages; unfamiliar words are linked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from glossary_terms import glossary_terms
from pages import ROOT, blocks, links, prose

README = ROOT / "README.md"
INDEX = ROOT / "docs" / "index.md"
DOORS = ("Use it", "Run it", "Build on it", "Measure it")
MAX_PICTURE_BYTES = 200_000  # a page that opens at once, on a slow line too

_IMAGE = re.compile(r"!\[([^\]]+)\]\(([^)\s]+)\)")
_LINKED = re.compile(r"\[([^\]]*)\]\([^)\s]+\)")
_NO_PROSE = re.compile(r"^#.*$|`[^`\n]*`|!\[[^\]]*\]\([^)\s]+\)", re.MULTILINE)
EVERYDAY = frozenset(
    {
        *("address", "attack", "attribute", "audit", "author", "backup", "condition", "content", "cover"),
        *("cut", "day", "fault", "feed", "instruction", "link", "map", "message", "peer", "picture"),
        *("place", "process", "program", "publication", "purpose", "root", "route", "run", "second"),
        *("server", "subscription", "third", "user", "way", "word"),
    }
)
"""Terms that a sentence of these two pages also says with their everyday meaning, or near enough."""


def _section(page: Path, heading: str) -> str:
    return page.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def _names() -> set[str]:
    return {name for terms in glossary_terms().values() for name, _, _ in terms}


def test_the_front_page_is_short() -> None:
    words = _LINKED.sub(r"\1", _IMAGE.sub("", prose(README))).split()
    assert 500 <= len(words) <= 600


def test_its_picture_is_shown_before_the_first_heading() -> None:
    ((text, path),) = _IMAGE.findall(README.read_text().partition("\n## ")[0])
    assert len(text) > 100, "who cannot see it reads what it shows"
    picture = (ROOT / path).read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    assert len(picture) < MAX_PICTURE_BYTES


def test_it_takes_one_line_to_install_and_five_to_try() -> None:
    lines = [block.text.splitlines() for block in blocks(README) if block.language == "console"]
    assert [len(block) for block in lines] == [1, 5]


def test_it_says_what_it_is_not() -> None:
    said = _section(README, "Whom it protects, and whom not")
    assert len(re.findall(r"^- ", said, re.MULTILINE)) == 4
    assert "docs/threat-model.md" in said


@pytest.mark.parametrize("door", DOORS)
def test_a_door_leads_somewhere(door: str) -> None:
    anchor = door.lower().replace(" ", "-")
    assert f"[{door}](docs/index.md#{anchor})" in _section(README, "Four doors")
    assert _section(INDEX, door)


def test_behind_the_doors_is_every_page() -> None:
    reached = {(INDEX.parent / link.partition("#")[0]).resolve() for link in links(INDEX)}
    assert {*(ROOT / "docs").glob("*.md")} - {INDEX} <= reached


@pytest.mark.parametrize("page", [README, INDEX], ids=lambda page: page.name)
def test_a_word_of_the_glossary_is_linked_where_it_first_is(page: Path) -> None:
    text = _NO_PROSE.sub("", prose(page))
    linked = [range(*found.span()) for found in _LINKED.finditer(text)]
    early = []
    for term in sorted(_names() - EVERYDAY):
        first = re.search(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", text, re.IGNORECASE)
        if first is not None and not any(first.start() in where for where in linked):
            early.append(term)
    assert not early, "used before they are linked"


def test_what_is_everyday_is_a_term() -> None:
    assert _names() >= EVERYDAY
