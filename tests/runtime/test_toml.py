"""A file of TOML that somebody else wrote costs no more than its size lets expect."""

from __future__ import annotations

import tracemalloc

import pytest
from steps import one_step

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.config import MAX_CONFIG, Section, parse_toml
from hushcast_runtime.toml import MAX_DOTS, read_keys, read_toml

MOST_KEPT = 32_000_000  # bytes; a key of `MAX_DOTS` parts takes 4 to 8 million


def key_of(parts: int, part: str = "a") -> str:
    return ".".join([part] * parts)


@pytest.mark.parametrize("part", ["a", '"a"', "''", "a "])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{ {} = 1 }}", 'x = {{ y = "}}", {} = 1 }}'])
def test_a_key_of_thousands_of_parts_is_refused_before_it_is_read(form: str, part: str) -> None:
    text = form.format(key_of(MAX_CONFIG // (len(part) + 2), part))
    with one_step(), pytest.raises(UsageError, match=r"given is not TOML: line 1 has over 1,024 dots"):
        parse_toml(text.encode(), "given", Section)


def test_the_longest_key_that_is_read_takes_little() -> None:
    tracemalloc.start()
    try:
        found = read_toml(f"{key_of(MAX_DOTS + 1)} = 1")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(found) == ["a"]
    assert most < MOST_KEPT


def test_many_lines_have_as_many_dots_as_they_like() -> None:
    lines = [f'a{number} = "{"." * 100}"' for number in range(100)]
    assert len(read_toml("\n".join(lines))) == len(lines)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("\ufeffa = 1".encode(), "it begins with a byte order mark: save it as UTF-8 without one"),
        ("a = 1".encode("utf-16"), "it is text in UTF-16"),
        (b"a = \xe4", "line 1 is no UTF-8"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a =", "Invalid value"),
    ],
)
def test_who_wrote_it_is_told_what_is_wrong(data: bytes, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        read_keys(data, "given")
    assert str(caught.value).startswith("given is not TOML")
