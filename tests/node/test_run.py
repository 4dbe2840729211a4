"""A node process: what it shows of itself while it starts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from hushcast_node.run import _Node
from hushcast_runtime.config import JoinedNetworkSection, NodeSettings


async def test_a_node_that_has_a_roster_is_not_ready_until_applications_are_served(tmp_path: Path) -> None:
    joined = JoinedNetworkSection(name="small", directory="127.0.0.1:7411", directory_key="0" * 64)
    node = _Node(NodeSettings(role="client", state=str(tmp_path), network=joined, transport="tcp"))
    assert not node._status()["ready"]
    node._daemon = cast(Any, SimpleNamespace(status=lambda: {"ready": True}))
    assert not node._status()["ready"]
    node._serves = True
    assert node._status()["ready"]
