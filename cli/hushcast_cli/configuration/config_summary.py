"""What `check-config` prints of a configuration that can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hushcast_cli.options import Choices


def tell_summary(choices: Choices, file: Path, kind: str, summary: Mapping[str, Sequence[str]]) -> None:
    """Print what a good configuration says, by name."""
    from hushcast_cli.configuration.state import one_of
    from hushcast_cli.output import json_line, table, text_line, write

    if choices.json:
        write(json_line({"file": str(file), "kind": kind, **summary}))
        return
    write(text_line(f"{file}: a good configuration of {one_of(kind)}"))
    write(table([(name, what) for name, found in summary.items() for what in found]))
