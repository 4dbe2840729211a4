"""Files of purposes by keys: an issuer's signed vocabulary, and grants to a reader."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.purposes.grants import GrantScope, make_grant
from hushcast_protocol.purposes.purpose_keys import epoch_of
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.signed_vocabulary import SignedVocabulary, issue, write_issued
from hushcast_protocol.purposes.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    ["operations/billing", "operations/routing", "marketing/individualized", "marketing/newsletter"]
)
ISSUER = Seed(b"i" * 32)
EPOCH = epoch_of(time.time())


class Written(NamedTuple):
    """Where they are."""

    vocabulary: Path
    reader_key: Path
    grants: tuple[Path, ...]


def issued(series: int = 0, version: int = 1, epochs: range = range(EPOCH, EPOCH + 2)) -> SignedVocabulary:
    return issue(ISSUER, VOCABULARY, epochs, version, series, 0)


def write_files(folder: Path, purposes: Iterable[str], signed: SignedVocabulary | None = None) -> Written:
    """Write all of them, with grants for these purposes to a new reader."""
    signed = signed or issued()
    folder.mkdir(exist_ok=True)
    reader, key = AgreementKey.draw(os.urandom), folder / "reader.key"
    key.touch(mode=0o600)
    key.write_bytes(reader.reveal())
    (folder / "vocabulary").write_bytes(write_issued(signed))
    grants = []
    for number, purpose in enumerate(purposes):
        asked = GrantScope(number, reader.public(), Purpose(purpose), signed.epochs)
        grants.append(folder / f"{number}.grant")
        grants[-1].write_bytes(make_grant(ISSUER, signed, asked, 0, os.urandom))
    return Written(folder / "vocabulary", key, tuple(grants))
