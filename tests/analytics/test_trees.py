"""Trees as tables: what is none ends, and long ones take no longer than they are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from steps import one_step

from hushcast_analytics.root_paths import _walk


def lengths(*trees: dict[str, str | None]) -> list[tuple[str, int]]:
    tree = pa.map_(pa.string(), pa.string())
    columns = {
        **{name: pa.array(["x"] * len(trees)) for name in ("run", "mailbox", "token")},
        "planned": pa.array([0.5] * len(trees)),
        "tree": pa.array([list(each.items()) for each in trees], tree),
    }
    found = list(_walk([pa.RecordBatch.from_pydict(columns)]))
    return [(row["relay"], row["length"]) for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize("round_", [{"b": "b"}, {"b": "c", "c": "b"}, {"b": "nobody"}])
def test_what_does_not_end_at_the_root_has_no_way(round_: dict[str, str | None]) -> None:
    assert lengths({"a": None, **round_}, {"d": None, "e": "d"}) == [("a", 1), ("d", 1), ("e", 2)]


def test_a_tree_without_branches_takes_one_look_a_relay() -> None:
    chain = {f"{number}": f"{number - 1}" if number else None for number in range(5000)}
    with one_step():
        found = lengths(chain)
    assert found[-1] == ("4999", 5000)
