"""Links inside the documentation lead somewhere, and files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import PACKAGES, ROOT, anchors, links, pages, prose

_ELSEWHERE = ("http://", "https://", "mailto:")
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
    for name in _FILE.findall(prose(page)):
        assert (ROOT / name).is_file(), f"{name} does not exist"


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
