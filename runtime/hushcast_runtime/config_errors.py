"""What is wrong with a configuration, in words: the key, the reason, and what was probably meant."""

from __future__ import annotations

import re
import types
import typing

import msgspec

from hushcast_protocol.base.suggestions import did_you_mean

# msgspec: "Expected `int`, got `str` - at `$.network.epoch_seconds`"
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_CHOICE = re.compile(r"Invalid enum value '(.*)'", re.DOTALL)


def in_words(error: str, kind: type[msgspec.Struct]) -> str:
    """Return msgspec's error about such a file as `key: reason`, with what was probably meant."""
    reason, _, where = error.partition(" - at `$")
    path = [part for part in where.strip("`.").split(".") if part]
    if (found := _UNKNOWN.fullmatch(reason)) is not None:
        key = found[1]
        return f"{'.'.join([*path, key])}: there is no such key{_meant_key(key, path, kind)}"
    if (found := _MISSING.fullmatch(reason)) is not None:
        way_out = getattr(kind, "way_out", {}).get(found[1], "") if not path else ""
        return f"{'.'.join([*path, found[1]])}: this is missing{f': {way_out}' if way_out else ''}"
    if (found := _CHOICE.fullmatch(reason)) is not None:
        reason += did_you_mean(found[1], _choices(path, kind))
    return f"{'.'.join(path)}: {reason}" if path else reason


def _meant_key(key: str, path: list[str], kind: type[msgspec.Struct]) -> str:
    """Say where a known key belongs that stands in another section, or which key one looks like."""
    home = next((name for name, keys in _sections(kind).items() if key in keys), None)
    if home is not None:
        return f"; `{key}` belongs {f'into [{home}]' if home else 'to the top, before the first section'}"
    return did_you_mean(key, _sections(kind).get(".".join(path), ()))


def _sections(kind: type[msgspec.Struct]) -> dict[str, tuple[str, ...]]:
    """Return the keys of each section, those at the top under an empty name."""
    found = {"": kind.__struct_fields__}
    for name, hint in typing.get_type_hints(kind).items():
        if (section := _struct(hint)) is not None:
            found[name] = section.__struct_fields__
    return found


def _choices(path: list[str], kind: type[msgspec.Struct]) -> list[str]:
    hint: object = kind
    for part in path:
        section = _struct(hint)
        hint = typing.get_type_hints(section).get(part) if section is not None else None
    return [str(choice) for choice in typing.get_args(hint)]


def _struct(hint: object) -> type[msgspec.Struct] | None:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return next((one for one in kinds if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)
