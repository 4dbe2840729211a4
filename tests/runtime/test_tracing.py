"""Traces as daemons write them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from hushcast_protocol.base import ground_truth, observations
from hushcast_runtime.environment import Environment
from hushcast_runtime.file_tracer import FileTracer

ENV = cast("Environment", SimpleNamespace(now=lambda: 7200.0))
LEASE = observations.Installed(b"l", b"m", 3, b"n", b"p", 2, 1)
HANDED = observations.Handed(b"i", b"s", (b"t",), b"h", 9, True)
COMPARED = observations.Compared(3, b"p", b"k")
TREE = ground_truth.Installed("t", b"b", 3, 1, {b"r": None, b"o": b"r"}, (b"t",))


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (LEASE, '"previous":"70","next":"6e","lease":"6c","mark":"6d","day":3,"elements":2,"children":1'),
        (HANDED, '"message":"69","tokens":["74"],"size":9,"pseudonym":"73","payload":"68","readable":true'),
        (COMPARED, '"day":3,"key":"6b","path":"70"'),
        (TREE, '"topic":"t","mailbox":"62","day":3,"depth":1,"tree":{"72":null,"6f":"72"},"tokens":["74"]'),
    ],
)
def test_fields_stay_in_their_order(event: Any, fields: str, tmp_path: Path) -> None:
    tracer = FileTracer(tmp_path, "n", "aa", 0.0, 3600, ENV)
    write = tracer.observe if isinstance(event, get_args(observations.Observed)) else tracer.tell
    write(event)
    tracer.close()
    lines = "".join(path.read_text() for path in sorted(tmp_path.iterdir())).splitlines()
    kind = type(event).__name__.lower()
    assert lines[0] == f'{{"schema":4,"node":"aa","time":7200.0,"epoch":2,"kind":"{kind}",{fields}}}'
