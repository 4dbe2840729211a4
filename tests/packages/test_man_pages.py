"""Manual pages: one a command, whose NAME line is a whole sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_names_are_whole_sentences(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "man_pages.py", tmp_path, "1700000000"], check=True)
    names = {}
    for page in tmp_path.iterdir():
        lines = page.read_text().splitlines()
        names[page.name] = lines[lines.index(".SH NAME") + 1]
    assert "hushcast-subscribe.1" in names
    assert [name for name in names.values() if not name.endswith(".") or name.endswith("...")] == []
