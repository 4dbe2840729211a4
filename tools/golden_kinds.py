"""Writes the bytes of one example of every kind of a wire into tests/data: none changes unseen.

`python tools/golden_kinds.py` adds kinds that are not there yet; `--check` changes nothing, and fails where
some are missing. A kind whose bytes are others than those kept is a mistake: links of the same wire would not
understand each other. It needs the next wire. While nobody runs this wire yet, `--anew` writes all anew.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import msgspec.inspect as shapes
from protocol_layouts import SECTIONS

from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.versions.wires import spoken
from hushcast_protocol.base.wire import encode

KEPT = Path(__file__).parents[1] / "tests" / "data" / f"wire-{spoken().highest}" / "kinds.txt"
_TEXTS = ("text", "a-name", "ab" * 32, "0" * 64, "en", "2026-01-01", "x", "")


def examples() -> Iterator[tuple[str, msgspec.Struct]]:
    """Yield each kind's section and name, and a value of it that is always the same."""
    for section, kinds in SECTIONS.items():
        for kind in kinds:
            fields = _Example().of(shapes.type_info(kind))
            yield f"{section} {kind.__name__}", msgspec.msgpack.decode(encode(fields), type=kind)


def kept() -> dict[str, bytes]:
    """Return the bytes that were kept, by section and name."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    return {name: bytes.fromhex(data) for name, _, data in (line.rpartition(" ") for line in lines)}


class _Example:
    """Makes what decodes: numbers go up within one example, so that its fields are told apart."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._within: list[type] = []

    def of(self, shape: shapes.Type) -> Any:
        """Return plain data of a shape."""
        return _MADE[type(shape)](self, shape)

    def struct(self, shape: shapes.StructType) -> Any:
        self._within.append(shape.cls)
        made = [self.field(shape.cls, field) for field in shape.fields]
        self._within.pop()
        return made if shape.tag is None else [shape.tag, *made]

    def field(self, kind: type, field: shapes.Field) -> Any:
        fixed = _FIXED.get((kind.__name__, field.name))
        return self.of(field.type) if fixed is None else fixed

    def number(self, shape: shapes.IntType) -> int:
        least = shape.ge if shape.ge is not None else (shape.gt or -1) + 1
        most = shape.le if shape.le is not None else (shape.lt or 2**48) - 1
        return min(least + next(self._numbers), most)

    def data(self, shape: shapes.BytesType) -> bytes:
        size = shape.min_length or min(5, 5 if shape.max_length is None else shape.max_length)
        return bytes([next(self._numbers) % 256]) * size

    def text(self, shape: shapes.StrType) -> str:
        longest = 1000 if shape.max_length is None else shape.max_length
        fits = (
            one
            for one in _TEXTS
            if (shape.min_length or 0) <= len(one) <= longest
            and (shape.pattern is None or re.search(shape.pattern, one))
        )
        return next(fits)

    def items(self, shape: shapes.VarTupleType | shapes.ListType) -> list[Any]:
        most = 2 if shape.max_length is None else min(2, shape.max_length)
        return [self.of(shape.item_type) for _ in range(max(most, shape.min_length or 0))]

    def one_of(self, shape: shapes.UnionType) -> Any:
        return self.of(next(one for one in shape.types if not self._is_left_out(one)))

    def _is_left_out(self, shape: shapes.Type) -> bool:
        """Tell whether another one of several is shown: than nothing, and than what is being made."""
        is_again = isinstance(shape, shapes.StructType) and shape.cls in self._within
        return is_again or isinstance(shape, shapes.NoneType)


_MADE: dict[type[shapes.Type], Callable[[_Example, Any], Any]] = {
    shapes.StructType: _Example.struct,
    shapes.IntType: _Example.number,
    shapes.BytesType: _Example.data,
    shapes.StrType: _Example.text,
    shapes.VarTupleType: _Example.items,
    shapes.ListType: _Example.items,
    shapes.TupleType: lambda make, shape: [make.of(one) for one in shape.item_types],
    shapes.UnionType: _Example.one_of,
    shapes.NoneType: lambda make, shape: None,
    shapes.BoolType: lambda make, shape: True,
    shapes.FloatType: lambda make, shape: next(make._numbers) / 4,
    shapes.LiteralType: lambda make, shape: shape.values[0],
    shapes.EnumType: lambda make, shape: next(iter(shape.cls)).value,
    shapes.DictType: lambda make, shape: {make.of(shape.key_type): make.of(shape.value_type)},
}
_FIXED: dict[tuple[str, str], Any] = {
    ("AuthorityContact", "address"): memory_address(bytes(32)),
    ("Authorities", "quorum"): 2,
    ("Authorities", "rules"): [["a_rule", 1], ["b_rule", 2]],
}
"""Of kinds that ask for more than their fields' types say."""


def main() -> int:
    """Add, write anew or check; return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="change nothing; fail if kinds are missing")
    arguments.add_argument("--anew", action="store_true", help="write all anew, of a wire that nobody runs")
    asked = arguments.parse_args()
    made = {name: encode(value) for name, value in examples()}
    held = {} if asked.anew else kept()
    for name in made.keys() & held.keys():
        if made[name] != held[name]:
            sys.stderr.write(f"{name} is not as wire {spoken().highest} has it: it needs the next wire\n")
            return 1
    if asked.check:
        missing = made.keys() ^ held.keys()
        sys.stderr.writelines(f"{name} is in one place alone: run {sys.argv[0]}\n" for name in missing)
        return 1 if missing else 0
    lines = sorted(f"{name} {data.hex()}\n" for name, data in (held | made).items())
    KEPT.parent.mkdir(exist_ok=True)  # of a wire that has begun
    KEPT.write_text("".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
