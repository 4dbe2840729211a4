"""What is wrong with a configuration, in words: the key, the reason, and what was probably meant."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Mapping

import msgspec

from hushcast_protocol.base.suggestions import did_you_mean

# msgspec: "Expected `int`, got `str` - at `$.network.epoch_seconds`", "… - at `$.listen[1]`"
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_CHOICE = re.compile(r"Invalid (?:enum )?value '(.*)'", re.DOTALL)
_EXPECTED = re.compile(r"Expected `([^`]+)`(?:, got `([^`]+)`)?(.*)", re.DOTALL)
_TOML = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text in quotes",
    "array": "a list",
    "object": "a section",
}
"""What msgspec's types are to people who write TOML."""
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def in_words(error: str, kind: type[msgspec.Struct], values: object = None) -> str:
    """Return msgspec's error about such a file as `key: reason`, with what was probably meant.

    `values` are what the file holds: msgspec does not say which key of a table of any keys it means.
    """
    reason, _, where = error.partition(" - at `$")
    names, hint = _follow(where.strip("`"), kind, values)
    if (found := _UNKNOWN.fullmatch(reason)) is not None:
        elsewhere = getattr(kind, "elsewhere", {}).get(found[1]) if not names else None
        reason = elsewhere or f"there is no such key{_meant_key(found[1], hint, kind)}"
        return f"{_name([*names, found[1]])}: {reason}"
    if (found := _MISSING.fullmatch(reason)) is not None:
        way_out = getattr(kind, "way_out", {}).get(found[1], "") if not names else ""
        return f"{_name([*names, found[1]])}: this is missing{f': {way_out}' if way_out else ''}"
    if (found := _CHOICE.fullmatch(reason)) is not None:
        reason += did_you_mean(found[1], [str(choice) for choice in typing.get_args(hint)])
    if (found := _EXPECTED.fullmatch(reason)) is not None:
        reason = f"write {_toml(found[1])}{f', not {_toml(found[2])}' if found[2] else ''}{found[3]}"
    return f"{_name(names)}: {reason}" if names else reason


def _toml(types: str) -> str:
    return " or ".join(_TOML.get(one, one) for one in types.split(" | ") if one != "null")


def _follow(where: str, hint: object, values: object) -> tuple[list[str], object]:
    """Return the names on the way that msgspec wrote, and what is expected at its end."""
    names: list[str] = []
    for field, entry in _STEP.findall(where):
        if field:
            hint = _hint(hint, field, values)
            names.append(field)
            values = values.get(field) if isinstance(values, Mapping) else None
            continue
        hint = next((one for one in reversed(typing.get_args(hint)) if one is not ...), None)
        if isinstance(values, Mapping):
            key = next((key for key, value in values.items() if not _fits(value, hint)), "…")
            names.append(str(key))
            values = values.get(key)
        else:
            names.append(f"#{int(entry) + 1}")  # as people count
            values = values[int(entry)] if isinstance(values, list) else None
    return names, _struct(hint, values) or hint


def _hint(hint: object, field: str, values: object) -> object:
    """Return what is expected at a key of a section, or of one of several that a key tells apart."""
    kinds = _structs(hint)
    tags = tuple(str(kind.__struct_config__.tag) for kind in kinds)
    if len(kinds) > 1 and field == kinds[0].__struct_config__.tag_field:
        return typing.Literal[tags]
    section = _struct(hint, values)
    return typing.get_type_hints(section).get(field) if section is not None else None


def _fits(value: object, hint: object) -> bool:
    try:
        msgspec.convert(value, typing.cast("type[object]", hint))
    except msgspec.ValidationError:
        return False
    return True


def _name(names: list[str]) -> str:
    return ".".join(names).replace(".#", " #")


def _meant_key(key: str, hint: object, kind: type[msgspec.Struct]) -> str:
    """Say where a known key belongs that stands in another section, or which key one looks like."""
    home = next((name for name, keys in _sections(kind).items() if key in keys), None)
    if home is not None:
        return f"; `{key}` belongs {f'into [{home}]' if home else 'to the top, before the first section'}"
    section = _struct(hint)
    return did_you_mean(key, section.__struct_encode_fields__ if section is not None else ())


def _sections(kind: type[msgspec.Struct]) -> dict[str, tuple[str, ...]]:
    """Return the keys of each section, those at the top under an empty name."""
    found = {"": kind.__struct_encode_fields__}
    for name, hint in typing.get_type_hints(kind).items():
        if (section := _struct(hint)) is not None:
            found[name] = section.__struct_encode_fields__
    return found


def _struct(hint: object, values: object = None) -> type[msgspec.Struct] | None:
    """Return the kind of section that is expected: of several, the one that a file's values are of."""
    kinds = _structs(hint)
    for kind in kinds:
        config = kind.__struct_config__
        if config.tag_field and isinstance(values, Mapping) and values.get(config.tag_field) == config.tag:
            return kind
    return kinds[0] if kinds else None


def _structs(hint: object) -> list[type[msgspec.Struct]]:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return [one for one in kinds if isinstance(one, type) and issubclass(one, msgspec.Struct)]
