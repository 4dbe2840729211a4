"""Links inside the documentation lead somewhere, and files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import PACKAGES, ROOT, anchors, links, pages, prose

_ELSEWHERE = ("http://", "https://", "mailto:")
_SHORT = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`")
_FILE = re.compile(rf"`((?:{'|'.join(PACKAGES)}|tests|tools|docs)/[\w./-]+\.\w+)`")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for link in links(page):
        if link.startswith(_ELSEWHERE):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{link}: {target.name} has no such heading"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_exist(page: Path) -> None:
    # In a room's README `client/routes.py` may be a file of the room, not of the room `client`.
    folders = [ROOT, *page.parent.glob("hushcast*")]
    for name in _FILE.findall(prose(page)):
        assert any((folder / name).is_file() for folder in folders), f"{name} does not exist"


@pytest.mark.parametrize("room", [*PACKAGES, "spark_analytics"])
def test_short_names_in_a_rooms_readme_are_files_of_it(room: str) -> None:
    files = [file.as_posix() for file in (ROOT / room).rglob("*.py")]
    for name in _SHORT.findall(prose(ROOT / room / "README.md")):
        is_whole = (ROOT / name).is_file()
        assert is_whole or any(file.endswith(f"/{name}") for file in files), f"{room} has no {name}"


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        for link in links(page):
            if not link.startswith(_ELSEWHERE) and (path := link.partition("#")[0]):
                waiting.append((page.parent / path).resolve())
    assert set(pages()) <= reached
