"""The glossary has each term once, in order, in one sentence, and its references lead somewhere."""

from __future__ import annotations

import re

from glossary_terms import glossary_terms

_SENTENCE_ENDS = re.compile(r"[.!?](?= [A-Z])")


def test_each_term_is_there_once() -> None:
    terms = [(term, qualifier) for terms in glossary_terms().values() for term, qualifier, _ in terms]
    assert len(terms) > 200
    assert len({(term.lower(), qualifier) for term, qualifier in terms}) == len(terms)
    names = [term for term, _ in terms]
    plain = {term for term, qualifier in terms if qualifier is None and names.count(term) > 1}
    assert not plain, "a word of two families is qualified in both"


def test_terms_are_in_alphabetical_order() -> None:
    for heading, terms in glossary_terms().items():
        keys = [re.sub(r"[^a-z0-9 ]", "", term.lower()) for term, _, _ in terms]
        assert keys == sorted(keys), heading


def test_a_term_has_one_sentence() -> None:
    for terms in glossary_terms().values():
        for term, _, sentence in terms:
            assert sentence.endswith("."), term
            assert not _SENTENCE_ENDS.search(sentence), term


def test_what_a_term_refers_to_is_a_term() -> None:
    names = {term for terms in glossary_terms().values() for term, _, _ in terms}
    for terms in glossary_terms().values():
        for term, _, sentence in terms:
            if see := re.fullmatch(r"see \*([^*]+)\*\.", sentence):
                assert see[1] in names, term
