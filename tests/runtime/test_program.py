"""The values of programs: all that they name is there, and no two programs share a word or a place."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hushcast_cli.configuration.places import service_places
from hushcast_runtime.processes.program import DottedPath, Program, program_called, programs

UNITS = Path(__file__).parents[2] / "systemd"
PROGRAMS = programs()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_a_program_names_is_there(program: Program) -> None:
    for field in dataclasses.fields(program):
        value = getattr(program, field.name)
        if isinstance(value, DottedPath):
            assert value.load() is not None, field.name
    assert program.version >= 1
    settings = program.settings.load()
    assert getattr(settings, "program_name", program.name) == program.name
    assert (UNITS / f"{service_places(program.name).unit}.service").exists()


def test_each_word_means_one_program() -> None:
    for program in PROGRAMS:
        for word in (program.name, program.name.rpartition("-")[2], *(role.word for role in program.roles)):
            assert word is None or program_called(word) is program
    with pytest.raises(LookupError):
        program_called("nobody")
    names = [role.name for program in PROGRAMS for role in program.roles]
    assert len(set(names)) == len(names)
