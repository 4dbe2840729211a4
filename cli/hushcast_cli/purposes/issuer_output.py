"""What people are told of vocabularies and grants, and what they typed of them."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hushcast.purposes.purpose_files import read_reader, read_vocabulary_file
from hushcast.secret_files import read_private
from hushcast_cli.choices import Choices
from hushcast_cli.output import json_line, text_line, write
from hushcast_cli.payload import DASH
from hushcast_cli.purposes import issuer_folder
from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.purposes.grants import MAX_GRANT, read_grant
from hushcast_protocol.purposes.purpose_keys import epoch_of, epoch_start
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_protocol.purposes.signed_vocabulary import MAX_ISSUED, SignedVocabulary, read_issued
from hushcast_protocol.purposes.vocabulary import MAX_VOCABULARY, Vocabulary, read_vocabulary, shipped

_LAST = 2**37  # Unix seconds: the year 6325; dates beyond cannot be shown


def listed(file: Path | None, dpv: bool) -> Vocabulary | None:
    """Return the purposes that a file lists, or the shipped ones; `None` if neither is given."""
    if dpv:
        return shipped()
    if file is None:
        return None
    if str(file) == DASH:
        data, shown = sys.stdin.buffer.read(MAX_VOCABULARY + 1), "standard input"
    else:
        (data, _), shown = read_private(file, MAX_VOCABULARY, "list of purposes"), str(file)
    if len(data) > MAX_VOCABULARY:
        raise UsageError(f"{shown} has more than {MAX_VOCABULARY:,} bytes: is it a list of purposes?")
    try:
        return read_vocabulary(data.decode())
    except (UsageError, UnicodeDecodeError) as error:
        problem = error if isinstance(error, UsageError) else "it is no UTF-8 text"
        raise UsageError(f"{shown}: {problem}") from None


def day(epoch: int) -> str:
    """Return the first day (UTC) of an epoch."""
    start = epoch_start(epoch)
    return datetime.fromtimestamp(start, UTC).date().isoformat() if 0 <= start < _LAST else "?"


def day_after(last: int) -> str:
    """Return the first day after an epoch."""
    return day(last + 1)


def tell_signed(choices: Choices, file: Path, issued: SignedVocabulary) -> None:
    """Tell of a vocabulary that was signed."""
    if choices.json:
        write(json_line({"file": str(file), **_described(issued)}))
        return
    body = issued.body
    write(
        text_line(f"{file}: version {body.version}, {_dates(issued.epochs)}, {len(body.purposes)} purposes")
    )
    write(text_line(f"issuer {body.issuer.hex()}"))


def show_vocabulary(choices: Choices, file: Path, issuer: str | None) -> None:
    """Show a vocabulary; raise `Refusal` where it cannot be used."""
    public = None if issuer is None else typed_key(issuer, "issuer's key")
    data, _ = read_private(file, MAX_ISSUED, "vocabulary")
    try:
        issued = read_issued(data, public)
        issued.check_time(time.time())
    except PurposeError as error:
        raise _refused(choices, file, error) from None
    if choices.json:
        write(json_line({**_described(issued), "purposes": list(issued.body.purposes), "problem": None}))
        return
    body = issued.body
    write(text_line(f"issuer {body.issuer.hex()}"))
    write(text_line(f"version {body.version}, keys {body.series}, {_dates(issued.epochs)}"))
    for purpose in body.purposes:
        write(text_line(f"  {purpose}"))


def make(choices: Choices, directory: Path, reader: str, wanted: str, weeks: int | None, beside: str) -> None:
    """Make a grant in an issuer's folder, and tell of it; raise `UsageError`."""
    folder, now = issuer_folder.load(directory), time.time()
    key, purpose = typed_key(reader, "reader's key"), folder.issued.vocabulary.read(wanted)
    first, stop = epoch_of(now), folder.issued.epochs.stop
    again = f"`hushcast purpose vocabulary new {directory}` signs the next version"
    if first >= stop:
        raise UsageError(f"the vocabulary's last epoch is over since {day(stop)}: {again}")
    if weeks is not None and first + weeks > stop:
        raise UsageError(f"the vocabulary ends on {day(stop)}: {again}, with more --weeks")
    last = stop - 1 if weeks is None else first + weeks - 1
    number = max((one.number for one in folder.granted), default=0) + 1
    one = issuer_folder.GrantRecord(number, key.hex(), purpose, first, last, int(now), beside)
    issuer_folder.add_grant(folder, one, os.urandom)
    file = folder.file_of(number)
    if choices.json:
        write(json_line({"file": str(file), **_granted(one)}))
        return
    write(text_line(f"{file}: {purpose}, {_dates(one.epochs)}"))


def list_grants(choices: Choices, directory: Path) -> None:
    """List the grants of an issuer's folder."""
    folder, now = issuer_folder.load(directory), time.time()
    for one in folder.granted:
        if choices.json:
            write(json_line(_granted(one)))
            continue
        state = "" if one.is_live(now) else "  withdrawn" if one.withdrawn is not None else "  over"
        line = f"{one.number:>4}  {one.reader[:8]}  {_dates(one.epochs)}  {one.purpose}{state}"
        write(text_line(f"{line}  {one.beside}".rstrip()))


def check_grant(choices: Choices, file: Path, key_file: Path, vocabulary: Path) -> None:
    """Tell what a grant is for; raise `Refusal` where it cannot be used."""
    key = read_reader(key_file)
    issued = read_vocabulary_file(vocabulary)
    data, _ = read_private(file, MAX_GRANT, "grant")
    try:
        grant = read_grant(data, key, issued.body.issuer)
        grant.check(issued, time.time())
    except PurposeError as error:
        raise _refused(choices, file, error) from None
    if choices.json:
        dates = {"from": day(grant.epochs[0]), "until": day_after(grant.epochs[-1])}
        write(json_line({"number": grant.number, "purpose": grant.purpose, **dates, "problem": None}))
        return
    write(text_line(f"{file}: {grant.purpose}, {_dates(grant.epochs)}"))


def typed_key(text: str, what: str) -> bytes:
    """Return a public key that a person typed; raise `UsageError`."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != AgreementKey.LENGTH:
        raise UsageError(f"{text!r} is no {what}: it has 64 hexadecimal digits")
    return key


def _refused(choices: Choices, file: Path, error: PurposeError) -> Refusal:
    if choices.json:
        write(json_line({"problem": str(error.problem)}))
    return Refusal(f"{file}: {error}")


def _dates(epochs: range) -> str:
    return f"from {day(epochs[0])} until {day_after(epochs[-1])}"


def _described(issued: SignedVocabulary) -> dict[str, object]:
    body, epochs = issued.body, issued.epochs
    told = {"issuer": body.issuer.hex(), "version": body.version, "series": body.series}
    return {**told, "from": day(epochs[0]), "until": day_after(epochs[-1])}


def _granted(one: issuer_folder.GrantRecord) -> dict[str, object]:
    told = msgspec.to_builtins(one)
    dates = {"from": day(one.first), "until": day_after(one.last)}
    return {name: told[name] for name in ("number", "reader", "purpose", "beside", "withdrawn")} | dates
