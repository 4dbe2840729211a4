"""docs/python.md is as the docstrings make it, and misses nothing of `import hushcast`."""

from __future__ import annotations

import importlib
import inspect
import re
from types import ModuleType

import pytest
from pages import ROOT, blocks

import hushcast

PAGE = ROOT / "docs" / "python.md"
CLASSES = [name for name in hushcast.__all__ if inspect.isclass(getattr(hushcast, name))]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return importlib.import_module("python_page")


def test_it_is_up_to_date(tool: ModuleType) -> None:
    page = PAGE.read_text()
    assert tool.reference() in page, "run python tools/python_page.py"
    assert tool.renewed(page) == page
    assert tool.renewed(page.replace("Return once", "Give back once")) == page, "what is old is noticed"


def test_every_public_name_is_there_once(tool: ModuleType) -> None:
    named = [name for names in tool.SECTIONS.values() for name in names]
    assert sorted(named) == hushcast.__all__
    assert sorted(re.findall(r"^#### `(\w+)`$", PAGE.read_text(), re.MULTILINE)) == hushcast.__all__


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_and_field_is_there_and_explained(tool: ModuleType, name: str) -> None:
    kind = getattr(hushcast, name)
    entry = PAGE.read_text().partition(f"#### `{name}`\n")[2].partition("\n#### ")[0]
    declared = {*getattr(kind, "__annotations__", {}), *vars(kind)} - tool.inner(name)
    for member in (one for one in declared if not one.startswith("_")):
        assert f"`{member}`" in entry or f"##### `{name}.{member}`" in entry, member
    for field, (_, said) in tool.fields(name).items():
        assert said or kind is hushcast.Finding, f"{field} wants a docstring"
    assert inspect.getdoc(kind)


def test_every_error_has_a_row_that_says_what_to_do(tool: ModuleType) -> None:
    table = PAGE.read_text().partition("## Errors and what to do")[2].partition("\n## ")[0]
    rows = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert rows == {*tool.SECTIONS["Errors"]} - {"HushcastError"}


def test_its_programs_are_python() -> None:
    programs = [block.text for block in blocks(PAGE) if block.language == "python"]
    assert len(programs) > 20
    for text in programs:
        if re.match(r"(async )?def \w+\([^\n]*-> .*\n?$|(async )?def \w+\(\n(    .*\n)+\) -> .*\n$", text):
            text = text.rstrip() + ": ..."
        compile(text, "docs/python.md", "exec", flags=0x2000)  # await outside of a function, as in a notebook
