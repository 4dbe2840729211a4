"""A password that is typed: by a person at a terminal, or by a program as one line of standard input."""

from __future__ import annotations

import sys

import click


def typed_password(most: int, is_new: bool = True) -> bytes:
    """Return a password, of a program at most `most` bytes and two; a new one a person is asked for twice."""
    if sys.stdin is not None and sys.stdin.isatty():
        again = "Again" if is_new else False
        text: str = click.prompt("Password", hide_input=True, confirmation_prompt=again, err=True)
        return text.encode()
    return first_line(sys.stdin.buffer.readline(most + 3) if sys.stdin is not None else b"")


def first_line(data: bytes) -> bytes:
    """Return the first line without its end."""
    return data.partition(b"\n")[0].removesuffix(b"\r")
