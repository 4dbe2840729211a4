"""The section of a user in a gateway's configuration: edited as text, so that comments and order stay."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hushcast_cli.configuration.config_files import check_edited, parsed, write_edited
from hushcast_protocol.base.errors import UsageError, unreadable
from hushcast_runtime.processes.config import MAX_LARGE_CONFIG
from hushcast_runtime.processes.network_file import toml_text
from hushcast_runtime.toml import read_keys

_HEADER = re.compile(r"\s*\[")
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def new_section(user: str, password: str) -> str:
    """Return the lines of a user with a password, who may do nothing yet."""
    return _section(user, f"password = {toml_text(password)}\n")


def put_password(file: Path, user: str, password: str) -> bool:
    """Write the hash of a user's password into a configuration; tell whether the user is new.

    Raises `UsageError`, and then changes nothing.
    """
    return _put(file, user, "password", lambda before: password)


def add_token(file: Path, user: str, token: str) -> bool:
    """Write the hash of one more token of a user into a configuration; as `put_password`."""
    return _put(file, user, "tokens", lambda before: [*(before if isinstance(before, list) else ()), token])


def token_lines(user: str, token: str) -> str:
    """Return the lines of a user with a token, who may do nothing yet."""
    return _section(user, f"tokens = {_toml([token])}\n")


def _section(user: str, line: str) -> str:
    return f"{_header(user)}\n{line}publish = []\nsubscribe = []\n"


def _toml(value: str | list[str]) -> str:
    return toml_text(value) if isinstance(value, str) else f"[{', '.join(map(toml_text, value))}]"


def _put(file: Path, user: str, key: str, change: Callable[[object], str | list[str]]) -> bool:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise unreadable(file, error) from None
    before, text = read_keys(data, str(file)), data.decode().replace("\r\n", "\n")
    users = before.get("users", {})
    known = users.get(user) if isinstance(users, dict) else None
    value = change(known.get(key) if isinstance(known, dict) else None)
    line = f"{key} = {_toml(value)}\n"
    fresh = (
        text.rstrip("\n") + "\n\n" + _section(user, line)
        if known is None
        else _replaced(text, user, key, line)
    )
    if len(fresh.encode()) > MAX_LARGE_CONFIG:
        raise UsageError(f"{file}: a configuration has at most {MAX_LARGE_CONFIG} bytes")
    check_edited(fresh, _expected(before, user, key, value), str(file), "users")
    write_edited(file, fresh)
    return known is None


def _replaced(text: str, user: str, key: str, line: str) -> str:
    """Return the text with another line of a key in the user's section, or with one at its top."""
    lines, of_key = text.splitlines(keepends=True), re.compile(rf"\s*{key}\s*=")
    start = next((at for at, found in enumerate(lines) if _is_header(found, user)), len(lines))
    end = next((at for at in range(start + 1, len(lines)) if _HEADER.match(lines[at])), len(lines))
    known = next((at for at in range(start + 1, end) if of_key.match(lines[at])), None)
    if known is None:
        lines.insert(start + 1, line)
    else:
        lines[known] = line
    return "".join(lines)


def _is_header(line: str, user: str) -> bool:
    """Tell whether a line begins the section of a user, however it is written."""
    if not _HEADER.match(line) or "users" not in line:
        return False
    return parsed(line) == {"users": {user: {}}}


def _header(user: str) -> str:
    return f"[users.{user if _BARE.match(user) else toml_text(user)}]"


def _expected(before: dict[str, Any], user: str, key: str, value: str | list[str]) -> dict[str, Any] | None:
    """Return what is to come out: all as before but for the one key."""
    users = before.get("users", {})
    if not isinstance(users, dict):
        return None
    new: dict[str, Any] = {"publish": [], "subscribe": []}
    return before | {"users": users | {user: users.get(user, new) | {key: value}}}
