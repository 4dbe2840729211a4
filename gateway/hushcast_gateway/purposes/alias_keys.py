"""Keys of an alias: what travels by it is sealed for purposes, and comes to those who were granted one.

Who has the alias's link and no grant reads nothing; a gateway with grants gives each message to the clients
whose purpose is one of those for which it opened, and to no others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from hushcast.purposes.purpose_files import PurposeFiles, read_grant_files, read_vocabulary_file
from hushcast_gateway.sections.keys_section import KeysSection
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_runtime.logs import log


def read_keys(
    section: KeysSection,
    now: Callable[[], float],
    randomness: Randomness,
    before: PurposeKeyring | None = None,
) -> PurposeKeyring:
    """Return what an alias seals and opens by; raises `UsageError` as `read_files`.

    `before` is what it does so by until now. Then no vocabulary is taken that is older, and a grant whose
    file is gone is held no longer: somebody took it away.
    """
    if before is not None:
        there = tuple(file for file in section.grant_files if _is_there(Path(file)))
        if there != section.grant_files:
            log.warning("files of grants are gone: they open nothing more")
        section = replace(section, grant_files=there)
    files = read_files(section)
    try:
        files.check(now())
    except PurposeError as error:
        log.warning("keys of an alias are not for now", reason=str(error.problem))
    if before is not None and before.issued.body.issuer == files.issued.body.issuer:
        try:
            files.issued.check_newer(before.issued)
        except PurposeError as error:
            raise UsageError(f"{section.vocabulary_file}: {error}") from None
    return PurposeKeyring(files.issued, files.grants, section.one_time_key == "message", randomness)


def _is_there(file: Path) -> bool:
    try:
        file.stat()
    except FileNotFoundError:
        return False
    except OSError:
        pass  # to read it will say why it cannot be
    return True


def read_files(section: KeysSection) -> PurposeFiles:
    """Read the vocabulary and grants of an alias; raises `UsageError` for what is not as its issuer made it.

    What is over is no error: messages may wait that it opens.
    """
    issuer = bytes.fromhex(section.issuer)
    issued = read_vocabulary_file(Path(section.vocabulary_file), issuer)
    reader = None if section.reader_key_file is None else Path(section.reader_key_file)
    return PurposeFiles(issued, read_grant_files(map(Path, section.grant_files), reader, issuer))
