"""Traces in files: a daemon outside a testnet does not load what writes them."""

from __future__ import annotations

from io import TextIOWrapper
from pathlib import Path
from typing import Any

from hushcast_protocol.base.ground_truth import GroundTruth, Stopped
from hushcast_protocol.base.observations import Observed
from hushcast_protocol.base.trace import Observation, Truth, kind_of, to_line
from hushcast_runtime.environment import Environment
from hushcast_runtime.files import private_directory


class FileTracer:
    """Writes the two files of one daemon."""

    is_on = True

    def __init__(
        self, directory: Path, name: str, node: str, began: float, epoch_seconds: int, env: Environment
    ) -> None:
        """Append to `<name>.observations.jsonl` and `<name>.truth.jsonl`; times count from `began`."""
        private_directory(directory)
        self._observations = _append(directory / f"{name}.observations.jsonl")
        self._truths = _append(directory / f"{name}.truth.jsonl")
        self._node = node
        self._began = began
        self._epoch_seconds = epoch_seconds
        self._env = env

    def observe(self, observed: Observed) -> None:
        """Append an observation."""
        record = Observation(self._node, *self._when(), kind_of(type(observed)), **_hexed(observed._asdict()))
        self._observations.write(to_line(record) + "\n")

    def tell(self, told: GroundTruth) -> None:
        """Append a truth."""
        record = Truth(self._node, *self._when(), kind_of(type(told)), **_hexed(told._asdict()))
        self._truths.write(to_line(record) + "\n")

    def close(self) -> None:
        """Note that the daemon stops, and close both files."""
        self.tell(Stopped())
        self._observations.close()
        self._truths.close()

    def _when(self) -> tuple[float, int]:
        now = self._env.now()
        return round(now - self._began, 6), int(now // self._epoch_seconds)


def _append(path: Path) -> TextIOWrapper:
    return path.open("a", buffering=1)


def _hexed(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: _hex(value) for name, value in fields.items()}


def _hex(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (tuple, list)):
        return tuple(_hex(item) for item in value)
    if isinstance(value, dict):
        return {_hex(key): _hex(item) for key, item in value.items()}
    return value
