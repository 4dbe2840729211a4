"""An issuer's folder: the key that all keys of its purposes come from, the vocabulary, and what was granted.

Only its owner may enter it. `vocabulary` and `grants/N.grant` are what is handed out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from hushcast.purposes.purpose_files import read_vocabulary_file
from hushcast.secret_files import read_private
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.errors import AuthenticationError, UsageError
from hushcast_protocol.purposes.grants import GrantScope, make_grant
from hushcast_protocol.purposes.purpose_keys import epoch_of
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.signed_vocabulary import SignedVocabulary, issue, write_issued
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_runtime.files import private_directory, write_private

MAX_REGISTERED = 10_000  # grants of one issuer, those that ended included: 3 MB in its register
ISSUER_KEY, VOCABULARY, GRANTS, REGISTER = "issuer.key", "vocabulary", "grants", "granted.json"
"""What is in the folder."""

_MADE = "`hushcast purpose vocabulary new` makes one"
_REGISTER_BYTES = MAX_REGISTERED * 1_024


class GrantRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the issuer remembers of a grant."""

    number: int
    reader: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    purpose: str
    first: int
    """The first epoch."""
    last: int
    made: int
    """Unix seconds."""
    beside: str = ""
    """What the issuer wrote beside it."""
    withdrawn: int | None = None
    """Unix seconds."""

    @property
    def epochs(self) -> range:
        """The epochs that it is for."""
        return range(self.first, self.last + 1)

    def is_live(self, now: float) -> bool:
        """Tell whether it is neither withdrawn nor over."""
        return self.withdrawn is None and epoch_of(now) <= self.last


_decode: Callable[[bytes], list[GrantRecord]] = msgspec.json.Decoder(list[GrantRecord]).decode


@dataclass(frozen=True)
class IssuerFolder:
    """An issuer's folder as it was read."""

    path: Path
    seed: Seed
    issued: SignedVocabulary
    granted: tuple[GrantRecord, ...]

    def file_of(self, number: int) -> Path:
        """Return where a grant lies."""
        return self.path / GRANTS / f"{number}.grant"

    def grant(self, one: GrantRecord, randomness: Randomness) -> bytes:
        """Return a grant's bytes; raise `UsageError`."""
        asked = GrantScope(one.number, bytes.fromhex(one.reader), Purpose(one.purpose), one.epochs)
        try:
            return make_grant(self.seed, self.issued, asked, one.made, randomness)
        except AuthenticationError:
            raise UsageError(
                f"{one.reader} is no reader's key: it is the 64 digits that `hushcast purpose key new` prints"
            ) from None


def is_there(path: Path) -> bool:
    """Tell whether a folder is an issuer's."""
    return (path / ISSUER_KEY).exists()


def found(path: Path, vocabulary: Vocabulary, weeks: int, now: float, randomness: Randomness) -> IssuerFolder:
    """Make an issuer's folder, with its key and the first version of its vocabulary; raise `UsageError`."""
    private_directory(path)
    seed = Seed.draw(randomness)
    issued = issue(seed, vocabulary, _from(now, weeks), 1, 0, int(now))
    write_private(path / REGISTER, b"[]\n")
    write_private(path / ISSUER_KEY, seed.reveal())
    _write_vocabulary(path, issued)
    return IssuerFolder(path, seed, issued, ())


def load(path: Path) -> IssuerFolder:
    """Read an issuer's folder; raise `UsageError`."""
    if not is_there(path):
        raise UsageError(f"{path} is no issuer's folder: {_MADE}")
    private_directory(path)
    key, alone = read_private(path / ISSUER_KEY, Seed.LENGTH, "issuer's key")
    if not alone:
        raise UsageError(f"others can read {path / ISSUER_KEY}: chmod 600 it, or become another issuer")
    if len(key) != Seed.LENGTH:
        raise UsageError(f"{path / ISSUER_KEY} is no key: restore it from a backup")
    seed = Seed(key)
    issued = read_vocabulary_file(path / VOCABULARY, seed.public())
    data, _ = read_private(path / REGISTER, _REGISTER_BYTES, "list of grants")
    try:
        granted = tuple(_decode(data))
    except (msgspec.MsgspecError, ValueError):
        raise UsageError(f"{path / REGISTER} is damaged: restore it from a backup") from None
    return IssuerFolder(path, seed, issued, granted)


class VocabularyChange(NamedTuple):
    """What the next version of a vocabulary is to be."""

    vocabulary: Vocabulary
    weeks: int
    new_keys: bool
    """Whether all purposes get other keys."""


def with_next_version(
    folder: IssuerFolder, change: VocabularyChange, now: float, randomness: Randomness
) -> IssuerFolder:
    """Sign the next version of a vocabulary; with new keys make all live grants anew; raise `UsageError`."""
    body = folder.issued.body
    live = [one for one in folder.granted if one.is_live(now)] if change.new_keys else []
    last = max((one.last for one in live), default=0)
    epochs = _from(now, max(change.weeks, last + 1 - epoch_of(now)))
    series = body.series + change.new_keys
    issued = issue(folder.seed, change.vocabulary, epochs, body.version + 1, series, int(now))
    after = replace(folder, issued=issued)
    renewed = {
        one.number: msgspec.structs.replace(one, first=max(one.first, epochs[0]), made=int(now))
        for one in live
    }
    again = [(after.file_of(number), after.grant(one, randomness)) for number, one in renewed.items()]
    # The vocabulary last: after a crash in between, the same typed again makes the same series.
    after = _register(after, [renewed.get(one.number, one) for one in folder.granted])
    for file, data in again:
        write_private(file, data)
    _write_vocabulary(folder.path, issued)
    return after


def add_grant(folder: IssuerFolder, one: GrantRecord, randomness: Randomness) -> IssuerFolder:
    """Make a grant and remember it; raise `UsageError`."""
    if len(folder.granted) >= MAX_REGISTERED:
        raise UsageError(f"an issuer makes {MAX_REGISTERED:,} grants at most: begin another folder")
    data = folder.grant(one, randomness)
    private_directory(folder.path / GRANTS)
    after = _register(folder, [*folder.granted, one])
    write_private(folder.file_of(one.number), data)
    return after


def withdraw(folder: IssuerFolder, number: int, now: float) -> tuple[IssuerFolder, GrantRecord]:
    """Remember that a grant is withdrawn, and delete its file; raise `UsageError` where there is none."""
    one = next((one for one in folder.granted if one.number == number), None)
    if one is None:
        raise UsageError(f"there is no grant {number}: `hushcast purpose grants {folder.path}` lists them")
    if one.withdrawn is not None:
        raise UsageError(f"grant {number} is withdrawn already")
    gone = msgspec.structs.replace(one, withdrawn=int(now))
    after = _register(folder, [gone if each.number == number else each for each in folder.granted])
    folder.file_of(number).unlink(missing_ok=True)
    return after, gone


def _from(now: float, weeks: int) -> range:
    return range(epoch_of(now), epoch_of(now) + weeks)


def _write_vocabulary(path: Path, issued: SignedVocabulary) -> None:
    write_private(path / VOCABULARY, write_issued(issued))


def _register(folder: IssuerFolder, granted: list[GrantRecord]) -> IssuerFolder:
    data = msgspec.json.format(msgspec.json.encode(granted), indent=1) + b"\n"
    write_private(folder.path / REGISTER, data)
    return replace(folder, granted=tuple(granted))
