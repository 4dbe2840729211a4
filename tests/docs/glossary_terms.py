"""The glossary's terms, by its sections."""

from __future__ import annotations

import re

from pages import ROOT

_PAGE = ROOT / "docs" / "glossary.md"
_TERM = re.compile(r"- \*\*([^*]+)\*\*(?: \(([^)]+)\))?: (.+)")


def glossary_terms() -> dict[str, list[tuple[str, str | None, str]]]:
    """Return (term, its qualifier, its sentence) of every line in a list, by section."""
    found: dict[str, list[tuple[str, str | None, str]]] = {}
    for section in _PAGE.read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("- ")]
        matched = [_TERM.fullmatch(line) for line in lines]
        assert all(matched), "a term is `- **term** (qualifier): sentence`"
        found[heading] = [(term[1], term[2], term[3]) for term in matched if term is not None]
    return found
