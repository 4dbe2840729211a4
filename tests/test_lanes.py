"""`make test` runs each test in one of its lanes, whatever marks it has."""

import itertools
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_test_runs_in_one_lane() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (real,) = re.findall(r"^REAL := (.*)$", makefile, re.MULTILINE)
    (lanes,) = re.findall(r"^LANES := (.*)$", makefile, re.MULTILINE)
    expressions = []
    for lane in lanes.split():
        (chosen,) = re.findall(rf'^test-{lane}:\n.* -m "(.*)"$', makefile, re.MULTILINE)
        expressions.append(chosen.replace("$(REAL)", real))
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    marks = [line.partition(":")[0] for line in options["markers"]]
    for has in itertools.product((False, True), repeat=len(marks)):
        marked = dict(zip(marks, has, strict=True))
        # These are Python's expressions, too, as far as they go.
        assert sum(bool(eval(each, {}, marked)) for each in expressions) == 1, marked
