"""The glossary has each term once, in order, in one sentence, and its references lead somewhere."""

from __future__ import annotations

import re

from pages import ROOT

_PAGE = ROOT / "docs" / "glossary.md"
_TERM = re.compile(r"- \*\*([^*]+)\*\*(?: \(([^)]+)\))?: (.+)")
_SENTENCE_ENDS = re.compile(r"[.!?](?= [A-Z])")


def _sections() -> dict[str, list[tuple[str, str | None, str]]]:
    """Return (term, its qualifier, its sentence) of every line in a list, by section."""
    found: dict[str, list[tuple[str, str | None, str]]] = {}
    for section in _PAGE.read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("- ")]
        terms = [_TERM.fullmatch(line) for line in lines]
        assert all(terms), "a term is `- **term** (qualifier): sentence`"
        found[heading] = [(term[1], term[2], term[3]) for term in terms if term is not None]
    return found


def test_each_term_is_there_once() -> None:
    terms = [(term, qualifier) for terms in _sections().values() for term, qualifier, _ in terms]
    assert len(terms) > 200
    assert len({(term.lower(), qualifier) for term, qualifier in terms}) == len(terms)
    names = [term for term, _ in terms]
    plain = {term for term, qualifier in terms if qualifier is None and names.count(term) > 1}
    assert not plain, "a word of two families is qualified in both"


def test_terms_are_in_alphabetical_order() -> None:
    for heading, terms in _sections().items():
        keys = [re.sub(r"[^a-z0-9 ]", "", term.lower()) for term, _, _ in terms]
        assert keys == sorted(keys), heading


def test_a_term_has_one_sentence() -> None:
    for terms in _sections().values():
        for term, _, sentence in terms:
            assert sentence.endswith("."), term
            assert not _SENTENCE_ENDS.search(sentence), term


def test_what_a_term_refers_to_is_a_term() -> None:
    names = {term for terms in _sections().values() for term, _, _ in terms}
    for terms in _sections().values():
        for term, _, sentence in terms:
            if see := re.fullmatch(r"see \*([^*]+)\*\.", sentence):
                assert see[1] in names, term
