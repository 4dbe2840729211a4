"""The files by which messages are for purposes alone: a signed vocabulary, a reader's key, grants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

from hushcast.secret_files import read_key, read_private
from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.purposes.grants import MAX_GRANT, Grant, read_grant
from hushcast_protocol.purposes.purpose_keys import epoch_start
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_protocol.purposes.signed_vocabulary import MAX_ISSUED, SignedVocabulary, read_issued

T = TypeVar("T")


class PurposeFiles(NamedTuple):
    """What lies in them."""

    issued: SignedVocabulary
    grants: tuple[Grant, ...]

    @property
    def ends(self) -> int:
        """The Unix second when the vocabulary, or all that was granted for a purpose, is over."""
        last: dict[str, int] = {}
        for one in self.grants:
            last[one.purpose] = max(last.get(one.purpose, 0), one.epochs.stop)
        return epoch_start(min((self.issued.epochs.stop, *last.values())))

    def check(self, now: float) -> None:
        """Raise `PurposeError` where the vocabulary or a grant is of no use at a moment in Unix seconds."""
        self.issued.check_time(now)
        for grant in self.grants:
            grant.check(self.issued, now)


def read_vocabulary_file(file: Path, issuer: PublicKey | None = None) -> SignedVocabulary:
    """Read a signed vocabulary; raises `UsageError` where it is not as its issuer, this one, made it."""
    return _used(file, lambda: read_issued(read_private(file, MAX_ISSUED, "vocabulary")[0], issuer))


def read_grant_files(files: Iterable[Path], reader_key: Path | None, issuer: PublicKey) -> tuple[Grant, ...]:
    """Read grants to a reader; raises `UsageError` for what is not as its issuer made it.

    What is over is no error: messages may wait that it opens.
    """
    named = tuple(files)
    if not named:
        return ()
    if reader_key is None:
        raise UsageError("grants are sealed to a key: name its file as reader_key_file")
    reader = read_reader(reader_key)
    return tuple(_read_grant(file, reader, issuer) for file in named)


def read_reader(file: Path) -> AgreementKey:
    """Return the key in a file that only its owner can read; raise `UsageError`."""
    return AgreementKey(read_key(file, AgreementKey.LENGTH, "hushcast purpose key new FILE"))


def _read_grant(file: Path, reader: AgreementKey, issuer: PublicKey) -> Grant:
    return _used(file, lambda: read_grant(read_private(file, MAX_GRANT, "grant")[0], reader, issuer))


def _used(file: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except PurposeError as error:
        raise UsageError(f"{file}: {error}") from None
