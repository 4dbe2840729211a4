"""The section `purposes`, what a user's section says of them, and whether both go with the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from hushcast_protocol.base.errors import UsageError, unreadable
from hushcast_protocol.mqtt.topics import access
from hushcast_protocol.purposes.clauses import filter_problem
from hushcast_protocol.purposes.purpose_names import read_purpose
from hushcast_protocol.purposes.vocabulary import MAX_VOCABULARY, Vocabulary, read_vocabulary, shipped
from hushcast_runtime.processes.config import PathText, Section

MAX_CONFIGURED = 256  # reservations, and purposes or clients of one list, that a configuration holds

CONFIGURATION = "the configuration"
"""The owner of reservations that the configuration makes; no user has this name."""

PurposeText = Annotated[str, Meta(min_length=1, max_length=264)]
Purposes = Annotated[tuple[PurposeText, ...], Meta(max_length=MAX_CONFIGURED)]
FilterText = Annotated[str, Meta(min_length=1, max_length=1024)]
ClientText = Annotated[str, Meta(min_length=1, max_length=320)]


class ReservationSection(Section, frozen=True, kw_only=True):
    """A reservation for publishers that cannot make one: it narrows, as another owner's does."""

    filter: FilterText
    """The topics, as a filter."""
    aip: Purposes = ()
    """Purposes that messages may be used for, with all below them; none unless given."""
    pip: Purposes = ()
    """Purposes that they must not be used for, with all below them."""


class PurposesSection(Section, frozen=True, kw_only=True):
    """What messages may be used for; without this section, for anything."""

    mode: Literal["publish", "subscribe", "hybrid"] = "publish"
    """When is decided: for each message; for whole subscriptions; or both, where no message would be left."""
    store: Literal["cached", "tree", "flat"] = "cached"
    """How reservations are kept; all decide alike, and `flat` is there to be compared with."""
    strict: bool = False
    """Whether what nobody reserved is given to nobody."""
    vocabulary: PathText | None = None
    """A file with all purposes there are, one a line; the W3C's, which the program has, unless given."""
    paused: Literal["topic", "reason"] = "topic"
    """How a client hears that a subscription rests: by `$SYS/hush/purposes`, or by a disconnect (0x98)."""
    reservation: Annotated[tuple[ReservationSection, ...], Meta(max_length=MAX_CONFIGURED)] = ()

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each key with what is wrong with it, the vocabulary left aside."""
        if self.vocabulary is not None and not Path(self.vocabulary).is_absolute():
            where = "purposes.vocabulary"
            yield where, "give an absolute path, so that it does not depend on where you start"
        seen: set[str] = set()
        for number, one in enumerate(self.reservation, 1):
            where = f"purposes.reservation #{number}"
            if (problem := filter_problem(one.filter)) is not None:
                yield f"{where}.filter", problem
            if one.filter in seen:
                yield f"{where}.filter", "it is reserved above already: write all purposes there"
            seen.add(one.filter)

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield each key that names a purpose, with that."""
        for number, one in enumerate(self.reservation, 1):
            for key, purposes in (("aip", one.aip), ("pip", one.pip)):
                for purpose in purposes:
                    yield f"purposes.reservation #{number}.{key}", purpose


class PurposesOfUser(Section, frozen=True, kw_only=True):
    """What a user may say and claim of purposes; nothing unless given."""

    purposes: Purposes = ()
    """Purposes, with all below them, that its clients may name for their subscriptions."""
    purpose: PurposeText | None = None
    """What its subscriptions are for that name nothing: for clients that cannot be changed."""
    reserve: Annotated[tuple[FilterText, ...], Meta(max_length=MAX_CONFIGURED)] = ()
    """Topics that it may reserve, as filters; `%u` is the user's name, `%c` the client identifier."""
    may_presubscribe: Annotated[tuple[ClientText, ...], Meta(max_length=MAX_CONFIGURED)] = ()
    """Clients of other users, as `USER/CLIENT`, whose subscriptions it may give a purpose."""

    def speaks_of_purposes(self) -> bool:
        """Tell whether anything of it is given."""
        return bool(self.purposes or self.purpose or self.reserve or self.may_presubscribe)

    def problems_of_purposes(self, where: str, users: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield each key with what is wrong with it, the vocabulary left aside."""
        for number, one in enumerate(self.reserve, 1):
            if (problem := access.problem(one)) is not None:
                yield f"{where}.reserve #{number}", problem
        for number, one in enumerate(self.may_presubscribe, 1):
            place, user = f"{where}.may_presubscribe #{number}", one.partition("/")[0]
            if "/" not in one:
                yield place, "write USER/CLIENT: clients choose their identifiers, users do not"
            elif user and user not in users:
                yield place, f"there is no user {user}: write USER/CLIENT"

    def named_purposes(self, where: str) -> Iterator[tuple[str, str]]:
        """Yield each key that names a purpose, with that."""
        for number, one in enumerate(self.purposes, 1):
            yield f"{where}.purposes #{number}", one
        if self.purpose is not None:
            yield f"{where}.purpose", self.purpose


def vocabulary_of(section: PurposesSection) -> Vocabulary:
    """Read the vocabulary; raises `UsageError`."""
    if section.vocabulary is None:
        return shipped()
    path = Path(section.vocabulary)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_VOCABULARY + 1)
        text = data.decode()
    except OSError as error:
        raise unreadable(f"purposes.vocabulary: {path}", error) from None
    except UnicodeDecodeError:
        raise UsageError(f"purposes.vocabulary: {path} is not UTF-8 text") from None
    if len(data) > MAX_VOCABULARY:
        raise UsageError(f"purposes.vocabulary: {path} has more than {MAX_VOCABULARY} bytes")
    try:
        return read_vocabulary(text)
    except UsageError as error:
        raise UsageError(f"purposes.vocabulary: {path}: {error}") from None


def check_vocabulary(vocabulary: Vocabulary, named: Iterator[tuple[str, str]]) -> None:
    """Raise `UsageError` where a key names a purpose that is not in the vocabulary."""
    for where, problem in strangers(vocabulary, named):
        raise UsageError(f"{where}: {problem}")


def strangers(vocabulary: Vocabulary, named: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each key whose purpose is not in the vocabulary, with what to write."""
    for where, text in named:
        try:
            vocabulary.check(read_purpose(text))
        except UsageError as error:
            yield where, str(error)
