"""A package for one machine takes no library of another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from machine_code import foreign

ROOT = Path(__file__).parents[2]


def elf(cpu: int) -> bytes:
    return b"\x7fELF" + bytes(14) + cpu.to_bytes(2, "little") + bytes(44)


def test_a_library_of_another_machine_is_named(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "fits.so").write_bytes(elf(62))
    (tmp_path / "inner" / "arm.abi3.so").write_bytes(elf(183))
    (tmp_path / "short.so.1").write_bytes(b"\x7fELF")
    assert foreign(tmp_path, "amd64") == ["inner/arm.abi3.so", "short.so.1"]
    assert foreign(tmp_path, "arm64") == ["fits.so", "short.so.1"]
    asked = [sys.executable, ROOT / "tools" / "machine_code.py", "arm64", tmp_path]
    refused = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == "not for arm64: fits.so, short.so.1\n"
