"""Each test runs in one lane, and what it imports by name is what it means."""

import itertools
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FIRST = {"test_whole_network.py", "test_process.py", "test_watch.py"}
"""Tor, Spark, gateways, feeds and purposes; a kill; a browser."""


def test_each_test_runs_in_one_lane() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = dict(re.findall(r"^(REAL|QUICK) := (.*)$", makefile, re.MULTILINE))
    lanes = re.findall(r'^(?:test-\w+:|soak: .*)\n.* -m "(.*)"$', makefile, re.MULTILINE)
    assert len(lanes) == 5
    expressions = [
        each.replace("$(QUICK)", named["QUICK"]).replace("$(REAL)", named["REAL"]) for each in lanes
    ]
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    marks = [line.partition(":")[0] for line in options["markers"]]
    for has in itertools.product((False, True), repeat=len(marks)):
        marked = dict(zip(marks, has, strict=True))
        if marked["first"] and marked["soak"]:
            continue  # one of each real thing, or too large for every day
        # These are Python's expressions, too, as far as they go.
        assert sum(bool(eval(each, {}, marked)) for each in expressions) == 1, marked


def test_the_first_of_real_things_are_few(request: pytest.FixtureRequest) -> None:
    """`make test` is to end within five minutes: who adds to it takes something out."""
    marks_in = plugin(request.config).marks_in
    files = {file.name for file in (ROOT / "tests").rglob("test_*.py") if "first" in marks_in(file)[1]}
    assert files == FIRST


def test_what_tests_import_by_name_has_that_name_alone() -> None:
    """Of two files with one name Python takes that of the folder which it was told of first."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    names = Counter(file.stem for file in files)
    imported: set[str] = set()
    for file in files:
        imported.update(re.findall(r"^ *(?:from|import) (\w+)", file.read_text(), re.MULTILINE))
    assert not [name for name in sorted(imported) if names[name] > 1]


CHOSEN = "containers or processes and not (tor or spark)"


@pytest.mark.parametrize(
    ("of_all", "named", "chosen", "may"),
    [
        ([], [], CHOSEN, False),
        (["processes"], ["processes"], CHOSEN, True),
        ([], ["processes", "tor"], CHOSEN, True),  # some may be without a Tor
        (["tor"], ["processes", "tor"], CHOSEN, False),
        ([], ["containers", "tor"], CHOSEN, True),
        (["slow"], ["slow", "tor"], "not tor", True),
        (["slow"], ["slow", "tor"], "not (tor or slow)", False),
        ([], ["tor"], "not (tor or slow)", True),
        ([], [], "not (tor or slow)", True),
        ([], [], "trio", True),  # no mark of ours: no file is left out
    ],
)
def test_a_lane_loads_the_files_that_may_have_a_test_for_it(
    of_all: list[str], named: list[str], chosen: str, may: bool, request: pytest.FixtureRequest
) -> None:
    conftest = plugin(request.config)
    assert conftest.may_be_chosen(chosen, frozenset(of_all), frozenset(named)) is may


def test_marks_are_read_from_a_file(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    # Put together, as this file has none of them.
    mark = "pytest." + "mark."
    file = tmp_path / "test_some.py"
    text = f"pytestmark = [{mark}tor, {mark}processes]\n@{mark}spark\n@{mark}parametrize('a', [1])\n"
    file.write_text(text)
    of_all, named = plugin(request.config).marks_in(file)
    assert (of_all, named) == ({"tor", "processes"}, {"tor", "processes", "spark"})


def test_a_mark_that_stands_in_no_file_is_an_error(request: pytest.FixtureRequest) -> None:
    request.node.add_marker("tor")
    with pytest.raises(pytest.UsageError, match=r"names \[\], it has \['tor'\]"):
        plugin(request.config).check_marks([request.node])


def test_what_is_shared_stays_with_one_worker(request: pytest.FixtureRequest) -> None:
    group_of, tests = plugin(request.config).group_of, ROOT / "tests"
    booting = ("systemd/test_booted.py", "systemd/test_image.py", "testnet/test_containers.py")
    assert {group_of(tests / file) for file in booting} == {"containers"}
    over_tcp, over_tor = tests / "testnet/test_kills.py", tests / "testnet/test_tor_testnet.py"
    assert group_of(over_tcp) == group_of(over_tor) == "testnet"
    assert group_of(tests / "testnet/test_chaos.py") is None
    assert group_of(tests / "analytics/test_attacks.py") == group_of(tests / "cli/test_traces.py") == "spark"


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_each_worker_begins_with_its_share_of_long_files(
    workers: int, count: int, request: pytest.FixtureRequest
) -> None:
    long, short = [[-2 * number - 1, -2 * number - 2] for number in range(count)], list(range(40))
    ordered = plugin(request.config).by_worker(long, short, workers)
    assert sorted(ordered) == sorted([*itertools.chain(*long), *short])
    begin = 0
    for worker in range(workers):  # as xdist deals them out
        part = ordered[begin : begin + (len(ordered) - begin) // (workers - worker)]
        begin += len(part)
        share = [*itertools.chain(*long[worker::workers])]
        assert part[: len(share)] == share, "each file whole"
        assert all(test >= 0 for test in part[len(share) :])


def test_what_takes_longest_is_there(request: pytest.FixtureRequest) -> None:
    conftest = plugin(request.config)
    files = [ROOT / "tests" / name for name in conftest.LONGEST]
    assert all(file.exists() for file in files)
    assert [conftest.rank(file) for file in files] == [*range(len(files))]
    assert conftest.rank(Path(__file__)) == len(files)


def plugin(config: pytest.Config) -> Any:
    """The conftest of all tests: nobody can import it."""
    return config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
