"""The pages under test, and what they are made of: links, anchors, tables and fenced blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "protocol",
    "runtime",
    "directory",
    "client",
    "local",
    "overlay",
    "central",
    "brokers",
    "node",
    "gateway",
    "located",
    "testnet",
    "cli",
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_COMMENT = re.compile(r"<!-- (\w+): ([\w-]+) -->\n\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the comment on the line before it: `<!-- example: node -->`."""

    language: str
    text: str
    note: tuple[str, str] | None


def pages() -> list[Path]:
    """Return every page of documentation in the repository."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found += [
        ROOT / folder / "README.md"
        for folder in (*PACKAGES, "spark_analytics", "systemd", "tests", "examples")
    ]
    return sorted(found)


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text()
    found = []
    for fence in _FENCE.finditer(text):
        note = _COMMENT.search(text[: fence.start()])
        found.append(Block(fence[1], fence[2], (note[1], note[2]) if note else None))
    return found


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def links(page: Path) -> list[str]:
    """Return the targets of a page's links."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Return the names by which a page's headings can be linked to."""
    return {_anchor(heading) for heading in _HEADING.findall(prose(page))}


def _anchor(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row in a text, headings and rulers included."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def part(page: Path, note: str) -> str:
    """Return what follows `<!-- note -->` on a page, up to the next empty line."""
    _, found, rest = page.read_text().partition(f"<!-- {note} -->\n")
    assert found, f"{page.name} has no part {note!r}"
    return rest.partition("\n\n")[0]
