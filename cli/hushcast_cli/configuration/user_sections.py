"""The section of a user in a gateway's configuration: edited as text, so that comments and order stay."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hushcast_cli.configuration.config_files import check_edited, parsed, write_edited
from hushcast_protocol.base.errors import UsageError, unreadable
from hushcast_runtime.processes.config import MAX_LARGE_CONFIG
from hushcast_runtime.processes.network_file import toml_text
from hushcast_runtime.toml import read_keys

_HEADER = re.compile(r"\s*\[")
_PASSWORD = re.compile(r"\s*password\s*=")
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def new_section(user: str, password: str) -> str:
    """Return the lines of a user who may do nothing yet."""
    return f"{_header(user)}\npassword = {toml_text(password)}\npublish = []\nsubscribe = []\n"


def put_password(file: Path, user: str, password: str) -> bool:
    """Write the hash of a user's password into a configuration; tell whether the user is new.

    Raises `UsageError`, and then changes nothing.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise unreadable(file, error) from None
    before, text = read_keys(data, str(file)), data.decode().replace("\r\n", "\n")
    users = before.get("users", {})
    is_new = not isinstance(users, dict) or user not in users
    fresh = (
        text.rstrip("\n") + "\n\n" + new_section(user, password)
        if is_new
        else _replaced(text, user, password)
    )
    if len(fresh.encode()) > MAX_LARGE_CONFIG:
        raise UsageError(f"{file}: a configuration has at most {MAX_LARGE_CONFIG} bytes")
    check_edited(fresh, _expected(before, user, password), str(file), "users")
    write_edited(file, fresh)
    return is_new


def _replaced(text: str, user: str, password: str) -> str:
    """Return the text with another `password` in the user's section, or with one at its top."""
    lines = text.splitlines(keepends=True)
    line = f"password = {toml_text(password)}\n"
    start = next((at for at, found in enumerate(lines) if _is_header(found, user)), len(lines))
    end = next((at for at in range(start + 1, len(lines)) if _HEADER.match(lines[at])), len(lines))
    known = next((at for at in range(start + 1, end) if _PASSWORD.match(lines[at])), None)
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


def _expected(before: dict[str, Any], user: str, password: str) -> dict[str, Any] | None:
    """Return what is to come out: all as before but for the one password."""
    users = before.get("users", {})
    if not isinstance(users, dict):
        return None
    new: dict[str, Any] = {"publish": [], "subscribe": []}
    return before | {"users": users | {user: users.get(user, new) | {"password": password}}}
