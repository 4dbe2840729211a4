"""Every exit code is explained wherever exit codes are listed, and no other."""

from __future__ import annotations

import re

import click
import pytest
from pages import ROOT, rows

from hushcast_cli.exits import ExitCode
from hushcast_cli.main import cli

CODES = [code.value for code in ExitCode]


@pytest.mark.parametrize("page", ["cli.md", "operations.md"])
def test_pages_list_them(page: str) -> None:
    text = (ROOT / "docs" / page).read_text().partition("## Exit codes")[2].partition("\n#")[0]
    table = [cells for cells in rows(text) if cells[0].isdecimal()]
    assert [int(cells[0]) for cells in table] == CODES
    assert all(all(cells) for cells in table)


def test_the_help_lists_them() -> None:
    with click.Context(cli, info_name="hushcast") as context:
        listed = cli.get_help(context).partition("Exit codes:")[2].partition("Example:")[0]
    assert sorted(int(code) for code in re.findall(r"(?:^|\s)(\d+) ", listed)) == CODES
