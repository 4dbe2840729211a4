"""Options of commands that publish or read for purposes by keys."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hushcast_cli.options import FILE

_vocabulary = click.option(
    "--vocabulary", type=FILE, metavar="V", help="The signed vocabulary, for --for, --not and --purpose."
)
_issuer = click.option("--issuer", metavar="PUBLIC", help="Refuse it unless it is this issuer's.")


def allowed_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--for`, `--not`, `--vocabulary` and `--issuer`, which the command gets as `allowed`."""

    @click.option(
        "--for",
        "purposes",
        metavar="P,…",
        help="What it may be used for, with all below; `--for ''` is nothing. It opens for nothing else.",
    )
    @click.option("--not", "but_not", metavar="P,…", help="What it must not be used for, with all below.")
    @_vocabulary
    @_issuer
    @functools.wraps(command)
    def wrapped(
        *given: Any,
        purposes: str | None,
        but_not: str | None,
        vocabulary: Path | None,
        issuer: str | None,
        **named: Any,
    ) -> None:
        is_for = purposes is not None or but_not is not None
        _check_together(is_for, "--for and --not", vocabulary, issuer)
        if vocabulary is None or not is_for:
            command(*given, allowed=None, **named)
            return
        from hushcast.purposes.keys import read_purpose_keys

        keys = read_purpose_keys(vocabulary, issuer=issuer)
        allowed = keys.allow(None if purposes is None else _listed(purposes), _listed(but_not or ""))
        command(*given, allowed=allowed, **named)

    return wrapped


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
