"""Buttons of a message, as JSON or in ntfy's short form: `view, Open, https://…; http, Close, https://…`.

Source: ntfy, docs/publish.md, "action buttons".
"""

from __future__ import annotations

from typing import Any

import msgspec

MAX_ACTIONS = 3  # as ntfy's

_POSITIONS = {"view": ("action", "label", "url"), "http": ("action", "label", "url")}
_ALL = ("action", "label")
_KEYS = ("action", "label", "url", "method", "body", "intent", "clear", "value")
_NESTED = ("headers", "extras")

# No deeper than ntfy's: what was barely read could not be written within an event, by which it is deeper.
_Value = str | bool | int | float | dict[str, str] | None


def read_actions(text: str) -> list[dict[str, Any]] | None:
    """Return the buttons that a JSON array holds, `None` if these are none."""
    try:
        found = msgspec.json.decode(text, type=list[dict[str, _Value]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    is_sound = len(found) <= MAX_ACTIONS and all(
        isinstance(one.get("action"), str) and isinstance(one.get("label"), str) for one in found
    )
    return found if is_sound else None


def actions_as_json(text: str) -> str | None:
    """Return buttons in either form as a JSON array; `None` if these are none."""
    if text.lstrip().startswith("["):
        return text if read_actions(text) is not None else None
    found = []
    for part in _parts(text, ";"):
        if (one := _action(_parts(part, ","))) is None:
            return None
        found.append(one)
    written = msgspec.json.encode(found).decode()
    return written if read_actions(written) is not None else None


def _action(parts: list[str]) -> dict[str, Any] | None:
    """Return one button; the first values need no key."""
    one: dict[str, Any] = {}
    positions = _POSITIONS.get(_bare(parts[0]), _ALL)
    for number, part in enumerate(parts):
        key, is_keyed, value = part.partition("=")
        key = key.strip()
        outer, dot, inner = key.partition(".")
        if is_keyed and dot and outer in _NESTED:
            one.setdefault(outer, {})[inner] = _bare(value)
        elif is_keyed and key in _KEYS:
            one[key] = _bare(value)
        elif number < len(positions):
            one[positions[number]] = _bare(part)
        else:
            return None
    if "clear" in one:
        one["clear"] = one["clear"].lower() in ("true", "yes", "1")
    return one


def _bare(text: str) -> str:
    """Return a value without the quotes around it."""
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1].replace("\\" + text[0], text[0]) if quoted else text


def _parts(text: str, separator: str) -> list[str]:
    """Cut a text at a separator, but for where that stands in quotes, which begin a value."""
    found: list[str] = []
    start, quote, last = 0, "", ","
    for at, letter in enumerate(text):
        if quote:
            if letter == quote and text[at - 1] != "\\":
                quote = ""
        elif letter in "\"'" and last in ",;=":
            quote = letter
        elif letter == separator:
            found.append(text[start:at])
            start = at + 1
        if letter != " ":
            last = letter
    return [*found, text[start:]] if text[start:].strip() or not found else found
