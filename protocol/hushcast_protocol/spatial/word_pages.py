"""Sorted words that are hashed page by page, so that a few can be shown to be there, or to be absent.

The words of a batch, with their postings, and the owner's table of weights are such lists. A page has up to
eight words and says which word comes after it; pages are the leaves of a Merkle tree. To show that a word is
there, or that it is not, takes the one page where it would stand and the hashes beside its way up: some
hundreds of bytes among ten thousand words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Bytes32, Wire, encode
from hushcast_protocol.spatial.keywords import MAX_WORD, Keyword
from hushcast_protocol.spatial.postings import Postings

PAGE = 8  # words; fewer make more hashes, more make pages longer than the hashes that they save
MAX_PAGES = 32_768  # of one list: 262,144 words, as a table of weights may have
MAX_SHOWN = 64  # pages of one list that are shown: one for each word of a subscription
MAX_WEIGHT = 1_000_000_000  # what a table may weigh a word with; idf times a thousand has five digits

Weight = Annotated[int, msgspec.Meta(ge=1, le=MAX_WEIGHT)]


class Page(Wire, frozen=True, tag="page"):
    """Words that follow each other, and the one after them; with weights in a table, postings in a batch."""

    words: Annotated[tuple[Keyword, ...], msgspec.Meta(max_length=PAGE)]
    after: Annotated[str, msgspec.Meta(max_length=MAX_WORD)]
    weights: Annotated[tuple[Weight, ...], msgspec.Meta(max_length=PAGE)] = ()
    postings: Annotated[tuple[Postings, ...], msgspec.Meta(max_length=PAGE)] = ()


_Index = Annotated[int, msgspec.Meta(ge=0, lt=MAX_PAGES)]


class ShownPages(Wire, frozen=True, tag="pages"):
    """Some pages of a list of `count`, and the hashes beside their ways up, from left to right."""

    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGES)]
    at: Annotated[tuple[_Index, ...], msgspec.Meta(min_length=1, max_length=MAX_SHOWN)]
    pages: Annotated[tuple[Page, ...], msgspec.Meta(min_length=1, max_length=MAX_SHOWN)]
    beside: Annotated[tuple[Bytes32, ...], msgspec.Meta(max_length=MAX_SHOWN * 15)]


class PagedWords:
    """A sorted list of distinct words, with weights or postings, that pages can be shown of."""

    __slots__ = ("_firsts", "_hashes", "pages", "root")

    def __init__(
        self, words: Sequence[str], weights: Sequence[int] = (), postings: Sequence[Postings] = ()
    ) -> None:
        starts = range(0, len(words), PAGE)
        self._firsts = [words[at] for at in starts]
        afters = [*self._firsts[1:], ""]
        self.pages = [
            Page(
                tuple(words[at : at + PAGE]),
                after,
                tuple(weights[at : at + PAGE]),
                tuple(postings[at : at + PAGE]),
            )
            for at, after in zip(starts or range(1), afters, strict=True)
        ]
        self._hashes: dict[tuple[int, int], bytes] = {}
        self.root = _root(len(self.pages), self._hash(0, len(self.pages)))

    def _hash(self, low: int, high: int) -> bytes:
        """Hash the pages from `low` to before `high`, and keep it."""
        if high - low == 1:
            found = _page_hash(self.pages[low])
        else:
            middle = _middle(low, high)
            found = _pair(self._hash(low, middle), self._hash(middle, high))
        self._hashes[low, high] = found
        return found

    def page_of(self, word: str) -> int:
        """Return the index of the page where a word stands, or would."""
        return max(bisect_right(self._firsts, word) - 1, 0)

    def showing(self, words: Iterable[str]) -> ShownPages:
        """Show the pages where these words stand, or would."""
        return self.shown(self.page_of(word) for word in words)

    def shown(self, at: Iterable[int]) -> ShownPages:
        """Show the pages of these indices, one at least."""
        indices = tuple(sorted(set(at)))
        pages = tuple(self.pages[index] for index in indices)
        return ShownPages(len(self.pages), indices, pages, tuple(self._beside(indices)))

    def _beside(self, at: Sequence[int]) -> Iterator[bytes]:
        ranges = [(0, len(self.pages), 0, len(at))]  # of pages, and of those that are shown
        while ranges:
            low, high, first, last = ranges.pop()
            if first == last:
                yield self._hashes[low, high]
            elif high - low > 1:
                middle = _middle(low, high)
                cut = bisect_left(at, middle, first, last)
                ranges += (middle, high, cut, last), (low, middle, first, cut)


def root_of(shown: ShownPages) -> bytes:
    """Return the root that shown pages lead to; raise `DecodeError` where they lead to none."""
    at = shown.at
    if len(at) != len(shown.pages) or at[-1] >= shown.count or list(at) != sorted(set(at)):
        raise DecodeError("pages of words are not in their order")
    beside = iter(shown.beside)

    def up(low: int, high: int, first: int, last: int) -> bytes:
        """Hash the pages from `low` to before `high`, among them the shown ones from `first` to `last`."""
        if high - low == 1:
            return _page_hash(shown.pages[first])
        middle = _middle(low, high)
        cut = bisect_left(at, middle, first, last)
        left = up(low, middle, first, cut) if first < cut else next(beside)
        return _pair(left, up(middle, high, cut, last) if cut < last else next(beside))

    try:
        top = up(0, shown.count, 0, len(at))
    except StopIteration:
        raise DecodeError("hashes beside pages of words are missing") from None
    if next(beside, None) is not None:
        raise DecodeError("there are more hashes beside pages of words than ways up")
    return _root(shown.count, top)


def page_with(shown: ShownPages, word: str) -> Page | None:
    """Return the shown page where a word stands, or would stand if it were in the list; `None` if hidden."""
    for index, page in zip(shown.at, shown.pages, strict=True):
        begins = not index or (page.words and page.words[0] <= word)
        if begins and (not page.after or word < page.after):
            return page
    return None


def pages_of(shown: ShownPages, words: Iterable[str]) -> tuple[dict[str, Page], bool]:
    """Return the shown page of each word that is not hidden, and whether pages are shown besides."""
    found = {word: page for word in words if (page := page_with(shown, word)) is not None}
    return found, len({page.words for page in found.values()}) < len(shown.pages)


def _page_hash(page: Page) -> bytes:
    return digest(Domain.WORD_PAGE, encode(page))


def _pair(left: bytes, right: bytes) -> bytes:
    return digest(Domain.WORD_PAIR, left, right)


def _root(count: int, top: bytes) -> bytes:
    return digest(Domain.WORD_LIST, count.to_bytes(4, "big"), top)


def _middle(low: int, high: int) -> int:
    """Return where a range is cut: the largest power of two below its length goes left (RFC 6962, 2.1)."""
    return low + (1 << (high - low - 1).bit_length() - 1)
