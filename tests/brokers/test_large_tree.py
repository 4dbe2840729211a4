"""A tree of brokers and its clients, recounted; the long form is `python tests/brokers/large_tree.py`."""

from __future__ import annotations

import pytest
from large_tree import both


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["uniform", "clustered"])
async def test_everybody_gets_what_was_asked_for_before_and_after_brokers_are_replaced(workload: str) -> None:
    told, without = await both(12, 40, 9, workload)
    assert told["brokers replaced"] == 3
    assert told["deliveries before"] > 0
    assert told["deliveries meanwhile"] + told["deliveries after"] > 0
    assert told["rows"] < without["rows"]
    assert told["filters advertised"] < without["filters advertised"]
