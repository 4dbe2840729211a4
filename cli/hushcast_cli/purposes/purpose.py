"""`hushcast purpose`: who may open messages for which purpose, by keys, from files to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import FILE, FOLDER, GIVEN, json_option

if TYPE_CHECKING:
    from hushcast_cli.purposes.issuer_folder import IssuerFolder

_FOLDER = click.argument("directory", type=FOLDER, metavar="DIR")
_WEEKS = click.IntRange(1, 26)  # epochs of a vocabulary


@click.group(
    cls=CommandGroup,
    short_help="Grant keys by which messages open for a purpose alone.",
)
@json_option
def purpose() -> None:
    """Grant keys by which messages open for a purpose, and for no other.

    An issuer has a folder with its key. Its vocabulary goes to all who publish or read, a grant to one.
    `hushcast lab purpose` tries rules, which need no keys.
    """


@purpose.group("key")
@json_option
def reader_key() -> None:
    """Make the key that grants are sealed to."""


@reader_key.command("new")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def new_key(choices: Choices, file: Path) -> None:
    """Make a reader's key in the new file F, and print its public half.

    The issuer needs the public half, to grant something. Whoever has the file opens what was granted.

    \b
    Example:
      hushcast purpose key new reader.key
    """
    import os

    from hushcast.secret_files import write_new
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.crypto.secrets import AgreementKey

    key = AgreementKey.draw(os.urandom)
    write_new(file, key.reveal(), "key")
    public = key.public().hex()
    write(json_line({"file": str(file), "reader": public}) if choices.json else text_line(public))


@purpose.group()
@json_option
def lock() -> None:
    """Make what withdraws messages that were published with it."""


@lock.command("new")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def new_lock(choices: Choices, file: Path) -> None:
    """Make a lock in the new file F, for `hushcast publish --for P --lock F`.

    `hushcast publish --withdraw F` then asks all who keep these messages to delete them; who has the file can
    ask that, and nobody else. It is spent by that.

    \b
    Example:
      hushcast purpose lock new car.lock
    """
    from hushcast.purposes.keys import new_lock as make
    from hushcast_cli.output import json_line, text_line, write

    make(file)
    write(json_line({"file": str(file)}) if choices.json else text_line(str(file)))


@purpose.group()
@json_option
def vocabulary() -> None:
    """Sign which purposes there are, with the public halves of their keys."""


@vocabulary.command("new")
@_FOLDER
@click.argument("file", type=GIVEN, required=False, metavar="[FILE]")
@click.option(
    "--dpv", is_flag=True, help="The purposes of the W3C's Data Privacy Vocabulary, in place of FILE."
)
@click.option(
    "--weeks", type=_WEEKS, default=8, show_default=True, metavar="N", help="Epochs, this one included."
)
@click.option("--new-keys", is_flag=True, help="Other keys for all purposes; grants that run are made anew.")
@json_option
@pass_choices
def new_vocabulary(
    choices: Choices, directory: Path, file: Path | None, dpv: bool, weeks: int, new_keys: bool
) -> None:
    """Sign a vocabulary, in DIR/vocabulary.

    FILE lists the purposes, one a line, as operations/billing; `-` is standard input. In a new DIR an
    issuer's key is made; whoever has it can grant everything. In a DIR that is there the next version is
    signed, with the same purposes unless others are given: do so before the last epoch is over. An epoch has
    seven days. With --new-keys, what is sealed by the new version no older grant opens.

    \b
    Examples:
      hushcast purpose vocabulary new fleet purposes.txt
      hushcast purpose vocabulary new fleet --weeks 26
    """
    import os
    import time

    from hushcast_cli.purposes import issuer_folder
    from hushcast_cli.purposes.issuer_output import listed, tell_signed
    from hushcast_protocol.base.errors import UsageError

    if file is not None and dpv:
        raise UsageError("give FILE or --dpv, not both")
    wanted = listed(file, dpv)
    if issuer_folder.is_there(directory):
        held = issuer_folder.load(directory)
        wanted = wanted or held.issued.vocabulary
        change = issuer_folder.VocabularyChange(wanted, weeks, new_keys)
        folder = issuer_folder.with_next_version(held, change, time.time(), os.urandom)
    elif wanted is None:
        raise UsageError(f"{directory} is no issuer's folder yet: to make one, give FILE or --dpv")
    else:
        folder = issuer_folder.found(directory, wanted, weeks, time.time(), os.urandom)
    tell_signed(choices, directory / issuer_folder.VOCABULARY, folder.issued)
    if new_keys:
        _note_anew(folder)


@vocabulary.command()
@click.argument("file", type=FILE, metavar="FILE")
@click.option("--issuer", metavar="PUBLIC", help="Refuse it unless it is this issuer's.")
@json_option
@pass_choices
def show(choices: Choices, file: Path, issuer: str | None) -> None:
    """Show whose a vocabulary is, its dates and its purposes.

    Its signature is checked. One that cannot be used now ends with exit code 4.

    \b
    Example:
      hushcast purpose vocabulary show fleet.vocabulary
    """
    from hushcast_cli.purposes.issuer_output import show_vocabulary

    show_vocabulary(choices, file, issuer)


@purpose.command()
@_FOLDER
@click.option("--to", "reader", required=True, metavar="READER", help="The public half of the reader's key.")
@click.option("--for", "wanted", required=True, metavar="PURPOSE", help="What it may read for, and above it.")
@click.option(
    "--weeks", type=_WEEKS, metavar="N", help="Epochs, this one included; as many as there are unless given."
)
@click.option("--as", "beside", default="", metavar="TEXT", help="What to write beside it in DIR.")
@json_option
@pass_choices
def grant(
    choices: Choices, directory: Path, reader: str, wanted: str, weeks: int | None, beside: str
) -> None:
    """Grant a reader the keys of a purpose, in DIR/grants.

    With them it opens what is allowed for PURPOSE, by its own name or by that of one above it. The file
    is sealed to the reader's key. It cannot be taken back: it ends with its epochs.

    \b
    Example:
      hushcast purpose grant fleet --to 3b6a27bc… --for operations/billing --weeks 4 --as dashboard
    """
    from hushcast_cli.purposes.issuer_output import make

    make(choices, directory, reader, wanted, weeks, beside)


@purpose.command()
@_FOLDER
@json_option
@pass_choices
def grants(choices: Choices, directory: Path) -> None:
    """List what an issuer has granted, to whom, and until when.

    \b
    Example:
      hushcast purpose grants fleet
    """
    from hushcast_cli.purposes.issuer_output import list_grants

    list_grants(choices, directory)


@purpose.command()
@_FOLDER
@click.argument("number", type=click.IntRange(1), metavar="NUMBER")
@click.option("--at-once", is_flag=True, help="Other keys for all purposes; other grants are made anew.")
@json_option
@pass_choices
def withdraw(choices: Choices, directory: Path, number: int, at_once: bool) -> None:
    """Withdraw a grant.

    Nothing takes a key back: what is sealed until the grant's last epoch is over still opens by it, and so
    does all of those epochs that was recorded. With --at-once the next version of the vocabulary has other
    keys: nothing opens that is sealed by it. Then all writers need DIR/vocabulary, and all other readers
    both this and their new grants.

    \b
    Example:
      hushcast purpose withdraw fleet 3 --at-once
    """
    import os
    import time

    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_cli.purposes import issuer_folder
    from hushcast_cli.purposes.issuer_output import day_after
    from hushcast_protocol.purposes.purpose_keys import epoch_of

    now = time.time()
    folder, gone = issuer_folder.withdraw(issuer_folder.load(directory), number, now)
    issued = folder.issued
    if at_once:
        weeks = max(1, issued.epochs.stop - epoch_of(now))
        change = issuer_folder.VocabularyChange(issued.vocabulary, weeks, True)
        folder = issuer_folder.with_next_version(folder, change, now, os.urandom)
    until = day_after(gone.last)
    if choices.json:
        told = {
            "number": number,
            "opens_until": None if at_once else until,
            "series": folder.issued.body.series,
        }
        write(json_line(told))
        return
    if at_once:
        write(text_line(f"grant {number} is withdrawn, and opens nothing that the new vocabulary seals"))
        _note_anew(folder)
    else:
        write(text_line(f"grant {number} is withdrawn; it opens what is sealed before {until}"))
        note("with --at-once the vocabulary gets other keys, and it opens nothing from then on")


@purpose.command()
@click.argument("file", type=FILE, metavar="GRANT")
@click.option("--key", "key_file", type=FILE, required=True, metavar="F", help="The reader's key.")
@click.option(
    "--vocabulary", "issued", type=FILE, required=True, metavar="V", help="The issuer's signed vocabulary."
)
@json_option
@pass_choices
def check(choices: Choices, file: Path, key_file: Path, issued: Path) -> None:
    """Say what a grant is for, as the reader that it is for.

    One that was forged, is another reader's or another issuer's, or is over, ends with exit code 4.

    \b
    Example:
      hushcast purpose check 3.grant --key reader.key --vocabulary fleet.vocabulary
    """
    from hushcast_cli.purposes.issuer_output import check_grant

    check_grant(choices, file, key_file, issued)


def _note_anew(folder: IssuerFolder) -> None:
    """Say who needs what after keys changed."""
    import time

    from hushcast_cli.output import note
    from hushcast_cli.purposes.issuer_folder import VOCABULARY

    live = sum(one.is_live(time.time()) for one in folder.granted)
    note(f"next: hand {folder.path / VOCABULARY} to all who publish or read")
    if live:
        note(
            f"next: hand the grants in {folder.path / 'grants'} to their readers again: {live} were made anew"
        )
