"""A vocabulary: the closed tree of purposes that reservations and readers may name.

Both sides must mean the same by a name, and a name that nobody agreed on is a mistake and not a purpose:
`opertions` would be prohibited nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.foreign_text import BYTE_ORDER_MARK, MARKED
from hushcast_protocol.base.suggestions import did_you_mean, one_of
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors, read_purpose, shown

MAX_PURPOSES = 512  # of a vocabulary, those above what it lists included; the W3C's has 95
MAX_VOCABULARY = 262_144  # bytes of a vocabulary as a text; the longest 512 names take half of it
SHIPPED = "dpv.txt"
_MOST = 3  # purposes that a hint names


class Vocabulary:
    """A tree of purposes. What stands above a purpose belongs to it, whether it was listed or not."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Raise `UsageError` where a path is no purpose, where there are too many, or none."""
        found: set[Purpose] = set()
        for path in paths:
            found.update(ancestors(read_purpose(path)))
            if len(found) > MAX_PURPOSES:
                raise UsageError(
                    f"a vocabulary has {MAX_PURPOSES} purposes at most, those above its own included"
                )
        if not found:
            raise UsageError("a vocabulary has one purpose at least")
        self._purposes = frozenset(found)
        self._order = tuple(sorted(found, key=lambda one: one.split("/")))
        self.roots = frozenset(one for one in found if "/" not in one)
        """The purposes with none above them: to allow these is to allow everything."""

    def __contains__(self, purpose: object) -> bool:
        """Tell whether a purpose belongs to it."""
        return purpose in self._purposes

    def __iter__(self) -> Iterator[Purpose]:
        """Yield all purposes, each before those below it, in the same order for the same vocabulary."""
        return iter(self._order)

    def __len__(self) -> int:
        """Count the purposes."""
        return len(self._purposes)

    def __eq__(self, other: object) -> bool:
        """Tell whether two have the same purposes."""
        return isinstance(other, Vocabulary) and self._purposes == other._purposes

    def __hash__(self) -> int:
        """Hash by the purposes."""
        return hash(self._purposes)

    def check(self, purpose: Purpose) -> None:
        """Raise `UsageError` where a purpose does not belong to it; the text names those that look like it.

        To find those takes milliseconds: for people. `in` answers at once.
        """
        if purpose not in self._purposes:
            raise UsageError(f"{shown(purpose)} is not in the vocabulary{self._hint(purpose)}")

    def read(self, text: str) -> Purpose:
        """Return a purpose of this vocabulary by its name, or raise `UsageError`."""
        if text not in self._purposes:
            self.check(read_purpose(text))  # which says what it is, or that it is none
        return Purpose(text)

    def _hint(self, purpose: Purpose) -> str:
        ends = [one for one in self if one.endswith(f"/{purpose}")]  # `billing` for `operations/billing`
        if ends:
            return f": did you mean {one_of(ends[:_MOST])}?"
        if hint := did_you_mean(purpose, self):
            return hint
        below = next((one for one in ancestors(purpose)[1:] if one in self._purposes), None)
        return f": below {below} there is no such purpose" if below is not None else ""


def read_vocabulary(text: str) -> Vocabulary:
    """Return the vocabulary that a text lists, one purpose a line; `#` begins a comment.

    Raise `UsageError` with the line that is wrong.
    """
    if text.startswith(BYTE_ORDER_MARK):
        raise UsageError(MARKED)
    paths = []
    for number, line in enumerate(text.splitlines(), 1):
        path = line.partition("#")[0].strip()
        if not path:
            continue
        try:
            paths.append(read_purpose(path))
        except UsageError as error:
            raise UsageError(f"line {number}: {error}") from None
    return Vocabulary(paths)


@cache
def shipped() -> Vocabulary:
    """Return the purposes of the W3C's Data Privacy Vocabulary 2.0, as this package has them."""
    return read_vocabulary(resources.files(__package__).joinpath(SHIPPED).read_text("utf-8"))
