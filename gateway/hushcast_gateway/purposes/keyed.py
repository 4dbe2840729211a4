"""Keys of an alias: what travels by it is sealed for purposes, and comes to those who were granted one.

Who has the alias's link and no grant reads nothing; a gateway with grants gives each message to the clients
whose purpose is one of those for which it opened, and to no others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar

import structlog
from msgspec import Meta

from hushcast.files import read_key, read_private
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.secrets import AgreementKey, Randomness
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.cover import Element, cover_by
from hushcast_protocol.purposes.grants import MAX_GRANT, Grant, read_grant
from hushcast_protocol.purposes.issued import MAX_ISSUED, Issued, read_issued
from hushcast_protocol.purposes.keys import epoch_start
from hushcast_protocol.purposes.problems import NotUsable
from hushcast_protocol.purposes.sealed import Opened, Opener, Sealer
from hushcast_protocol.purposes.tags import message_tags, reader_tags
from hushcast_runtime.config import PathText, Section

MAX_GRANTS = 64  # of one alias, those of past epochs included: each key is tried with each message
MAX_COVERS = 256  # covers of an alias that are remembered, by the clauses that they follow from

T = TypeVar("T")

log = structlog.get_logger("gateway")


class KeysSection(Section, frozen=True, kw_only=True):
    """Keys by which what an alias carries opens for purposes alone."""

    vocabulary_file: PathText
    """The signed vocabulary, as its issuer hands it out."""
    issuer: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """The issuer's key, from somebody other than whoever brought the file."""
    reader_key_file: PathText | None = None
    """A file of mode 0600 with the key that grants are sealed to; for who only publishes, none."""
    grant_files: Annotated[tuple[PathText, ...], Meta(max_length=MAX_GRANTS)] = ()
    """The grants."""
    one_time_key: Literal["message", "day"] = "message"
    """How long what could open own messages is kept; for a day it ties messages together, and is quicker."""

    def paths(self) -> tuple[tuple[str, str], ...]:
        """Return each key that names a file, with that."""
        files = [("vocabulary_file", self.vocabulary_file)]
        if self.reader_key_file is not None:
            files.append(("reader_key_file", self.reader_key_file))
        return (*files, *((f"grant_files #{n}", one) for n, one in enumerate(self.grant_files, 1)))


class Keyed:
    """What an alias seals and opens by."""

    def __init__(self, issued: Issued, grants: Iterable[Grant], each_message: bool, randomness: Randomness):
        held = tuple(grants)
        self._issued = issued
        self._sealer = Sealer(issued, randomness, each_message)
        self._opener = Opener(held)
        self._covers: OrderedDict[tuple[frozenset[Clause], bool], tuple[Element, ...]] = OrderedDict()
        self.may_read = bool(held)
        """Whether it was granted anything, now or once."""
        self.tags = reader_tags(issued.body.issuer, {one.purpose for one in held})
        """What relays are asked for; none: everything."""

    def seal(
        self, content: bytes, clauses: Iterable[Clause], strict: bool, now: float
    ) -> tuple[bytes, frozenset[str]]:
        """Seal for what the clauses that reach a message allow; return it and the tags that it travels by.

        Raises `NotUsable` where the vocabulary has no keys for `now`.
        """
        elements = self._cover(frozenset(clauses), strict)
        return self._sealer.seal(elements, content, now), message_tags(self._issued.body.issuer, elements)

    def open(self, data: bytes) -> Opened:
        """Open a message; raise `NotUsable`."""
        return self._opener.open(data)

    def _cover(self, clauses: frozenset[Clause], strict: bool) -> tuple[Element, ...]:
        place = clauses, strict
        found = self._covers.get(place)
        if found is None:
            found = self._covers[place] = cover_by(clauses, strict, self._issued.vocabulary)
            if len(self._covers) > MAX_COVERS:
                self._covers.popitem(last=False)
        self._covers.move_to_end(place)
        return found


class Files(NamedTuple):
    """What lies in an alias's files."""

    issued: Issued
    grants: tuple[Grant, ...]

    @property
    def ends(self) -> int:
        """The Unix second when the vocabulary, or all that was granted for a purpose, is over."""
        last: dict[str, int] = {}
        for one in self.grants:
            last[one.purpose] = max(last.get(one.purpose, 0), one.epochs.stop)
        return epoch_start(min((self.issued.epochs.stop, *last.values())))


def read_keys(section: KeysSection, now: Callable[[], float], randomness: Randomness) -> Keyed:
    """Return what an alias seals and opens by; raises `UsageError` as `read_files`."""
    issued, grants = read_files(section)
    _warn(issued, grants, now())
    return Keyed(issued, grants, section.one_time_key == "message", randomness)


def read_files(section: KeysSection) -> Files:
    """Read the vocabulary and grants of an alias; raises `UsageError` for what is not as its issuer made it.

    What is over is no error: messages may wait that it opens.
    """
    issuer = bytes.fromhex(section.issuer)
    file = Path(section.vocabulary_file)
    issued = _used(file, lambda: read_issued(read_private(file, MAX_ISSUED, "vocabulary")[0], issuer))
    if not section.grant_files:
        return Files(issued, ())
    reader = _read_reader(section.reader_key_file)
    return Files(issued, tuple(_read_grant(Path(name), reader, issuer) for name in section.grant_files))


def _used(file: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except NotUsable as error:
        raise UsageError(f"{file}: {error}") from None


def _warn(issued: Issued, grants: Iterable[Grant], now: float) -> None:
    """Say at the start what is of no use now."""
    try:
        issued.check_time(now)
        for grant in grants:
            grant.check(issued, now)
    except NotUsable as error:
        log.warning("keys of an alias are not for now", reason=str(error.problem))


def _read_grant(file: Path, reader: AgreementKey, issuer: bytes) -> Grant:
    return _used(file, lambda: read_grant(read_private(file, MAX_GRANT, "grant")[0], reader, issuer))


def _read_reader(path: PathText | None) -> AgreementKey:
    if path is None:
        raise UsageError("grants are sealed to a key: name its file as reader_key_file")
    return AgreementKey(read_key(Path(path), AgreementKey.LENGTH, "hushcast purpose key new FILE"))
