"""Numbers with their nouns, and lists."""

from __future__ import annotations

import pytest

from hushcast_runtime.wording import counted, listed


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (1.0, "1 second"),
        (0.5, "0.5 seconds"),
        (2, "2 seconds"),
        (1200, "1,200 seconds"),
    ],
)
def test_a_number_has_its_noun(number: float, text: str) -> None:
    assert counted(number, "second") == text


def test_a_plural_of_its_own() -> None:
    assert counted(2, "address", "addresses") == "2 addresses"
    assert counted(1, "address", "addresses") == "1 address"


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_words_are_listed_as_in_a_sentence(words: list[str], text: str) -> None:
    assert listed(words) == listed(iter(words)) == text
