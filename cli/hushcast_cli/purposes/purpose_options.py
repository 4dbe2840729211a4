"""Options of commands that publish or read for purposes by keys."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli.options import FILE
from hushcast_protocol.base.errors import UsageError

if TYPE_CHECKING:
    from hushcast.purposes.keys import Lock

SPENT = ".withdrawn"
"""What the name of a lock's file ends in once it has withdrawn something."""

_vocabulary = click.option(
    "--vocabulary",
    type=FILE,
    metavar="V",
    help="The signed vocabulary of the purposes.",
)
_issuer = click.option("--issuer", metavar="PUBLIC", help="Refuse it unless it is this issuer's.")


def allowed_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--for`, `--not`, `--lock`, `--withdraw` and what they need; the command gets `allowed`."""

    @click.option(
        "--for",
        "purposes",
        metavar="P,…",
        help="What it may be used for, with all below; `--for ''` is nothing. It opens for nothing else.",
    )
    @click.option("--not", "but_not", metavar="P,…", help="What it must not be used for, with all below.")
    @click.option("--lock", type=FILE, metavar="F", help="With --for: let it be withdrawn by this lock.")
    @click.option(
        "--withdraw", type=FILE, metavar="F", help="Withdraw what was published here with --lock F."
    )
    @_vocabulary
    @_issuer
    @functools.wraps(command)
    def wrapped(
        *given: Any,
        purposes: str | None,
        but_not: str | None,
        lock: Path | None,
        withdraw: Path | None,
        vocabulary: Path | None,
        issuer: str | None,
        **named: Any,
    ) -> None:
        is_for = purposes is not None or but_not is not None
        if withdraw is not None and (is_for or lock is not None):
            raise click.UsageError("--withdraw publishes nothing else", click.get_current_context())
        _check_together(
            is_for or withdraw is not None, "--for, --not and --withdraw", vocabulary, issuer, lock
        )
        if vocabulary is None:
            command(*given, allowed=None, **named)
            return
        from hushcast.purposes.keys import read_lock, read_purpose_keys

        keys = read_purpose_keys(vocabulary, issuer=issuer)
        if withdraw is not None:
            allowed = keys.withdraw(_spent(withdraw))
            named |= _without_payload(named)
        else:
            held = None if lock is None else read_lock(lock)
            with _as_typed():
                allowed = keys.allow(
                    None if purposes is None else _listed(purposes), _listed(but_not or ""), lock=held
                )
        command(*given, allowed=allowed, **named)

    return wrapped


@contextmanager
def _as_typed() -> Iterator[None]:
    """Name options in place of the parts of a clause."""
    try:
        yield
    except UsageError as error:
        part, colon, problem = str(error).partition(": ")
        option = {"aip": "--for", "pip": "--not"}.get(part)
        raise UsageError(f"{option or part}{colon}{problem}") from None


def _spent(file: Path) -> Lock:
    """Return a lock whose file has another name from now on: nobody publishes with it by mistake."""
    from hushcast.purposes.keys import read_lock
    from hushcast_cli.output import note

    lock = read_lock(file)
    if file.suffix != SPENT:
        spent = file.with_name(file.name + SPENT)
        if spent.exists():
            raise UsageError(f"{spent} exists: a lock that was spent is in it; give it another name")
        try:
            file.rename(spent)
        except OSError as error:
            raise UsageError(f"{file} cannot become {spent}: {error.strerror}") from None
        note(f"the lock is spent, and is {spent} now: to withdraw on other topics, or again, name that")
    return lock


def _without_payload(named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `publish` that say that there is nothing to be read."""
    payload = "payload" if named["link_file"] is None else "topic"  # there what stands first is the payload
    if named[payload] is not None or named["payload"] is not None or named["file"] or named["lines"]:
        raise click.UsageError("--withdraw takes no payload", click.get_current_context())
    return {payload: ""}


def purpose_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--purpose` and the files that it takes, which the command gets as `purpose`."""

    @click.option("--purpose", metavar="P", help="Only what may be used for this, opened with --grant.")
    @_vocabulary
    @_issuer
    @click.option("--key", type=FILE, metavar="F", help="The reader's key, for --grant.")
    @click.option("--grant", "grants", type=FILE, multiple=True, metavar="G", help="A grant; several may be.")
    @functools.wraps(command)
    def wrapped(
        *given: Any,
        purpose: str | None,
        vocabulary: Path | None,
        issuer: str | None,
        key: Path | None,
        grants: tuple[Path, ...],
        **named: Any,
    ) -> None:
        _check_together(purpose is not None, "--purpose", vocabulary, issuer, key, *grants)
        if vocabulary is None or purpose is None:
            command(*given, purpose=None, **named)
            return
        if key is None or not grants:
            raise click.UsageError(
                "--purpose opens by grants: give them with --grant, and the reader's key with --key",
                click.get_current_context(),
            )
        from hushcast.purposes.keys import read_purpose_keys
        from hushcast_cli.output import note

        read_for = read_purpose_keys(vocabulary, issuer=issuer, reader_key=key, grants=grants).read_for(
            purpose
        )
        if read_for.problem is not None:
            note(f"note: only what was sealed before opens: {read_for.problem}")
        command(*given, purpose=read_for, **named)

    return wrapped


def _check_together(is_for: bool, what: str, vocabulary: Path | None, *files: object) -> None:
    usage = click.get_current_context()
    if is_for and vocabulary is None:
        raise click.UsageError(f"{what} go by a vocabulary: give its file with --vocabulary", usage)
    if not is_for and (vocabulary is not None or any(files)):
        raise click.UsageError(f"--vocabulary and what belongs to it are for {what}", usage)


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")] if text.strip() else []
