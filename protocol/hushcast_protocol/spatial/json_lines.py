"""Lines of JSON that people write: one object each, and what is wrong with it in words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.foreign_text import foreign


def read_object(line: bytes, keys: Mapping[str, str], example: str) -> dict[str, Any]:
    """Return the object on a line, in which all `keys` (name to what it must be) stand; raise `UsageError`.

    What a key must be is "text", "number" or "texts"; with "may be left out" behind it, it may be left out.
    """
    try:
        given = _decoder.decode(line.decode("utf-8", "surrogatepass"))
    except UsageError:
        raise
    except (ValueError, RecursionError):
        problem = foreign(line) or f"this is no JSON: write one object a line, as {example}"
        raise UsageError(problem) from None
    if not isinstance(given, dict):
        raise UsageError(f"this is no JSON object: write {example}")
    for key in given:
        if key not in keys:
            raise UsageError(f"{key!r} is not known: there are {', '.join(map(repr, keys))}")
    for key, kind in keys.items():
        if key in given:
            given[key] = _checked(key, given[key], kind.partition(",")[0])
        elif not kind.endswith("may be left out"):
            raise UsageError(f"{key!r} is missing: write {example}")
    return given


def _checked(key: str, value: Any, kind: str) -> Any:
    if kind == "number":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{key!r} is no number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise UsageError(f"{key!r} is no number that a place or a share can have")
        return number
    if kind == "texts":
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise UsageError(f"{key!r} is no list of texts")
        return [_text(key, text) for text in texts]
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # ids are often counted
    if not isinstance(value, str):
        raise UsageError(f"{key!r} is no text")
    return _text(key, value)


def _text(key: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{key!r} is no valid Unicode") from None
    return text


def _no_constant(name: str) -> NoReturn:
    raise UsageError(f"{name} is no number that a place or a share can have")


_decoder = json.JSONDecoder(parse_constant=_no_constant)  # one: `json.loads` would make one a line
