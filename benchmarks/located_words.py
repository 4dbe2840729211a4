"""Figure: subscriptions to a located feed, read and matched, whose words have letters beyond ASCII."""

from __future__ import annotations

import gc
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from benchmarks.figures import Effort, Figure, alternate, at_least
from hushcast_located.crowd import Crowd
from hushcast_located.engines import matches
from hushcast_located.input_lines import read_subscriptions
from hushcast_located.workload import Workload, greatest_distance
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import BatchInterval, make_batch, read_batch
from hushcast_protocol.spatial.keywords import WordRule
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_messages import LocatedMessage
from hushcast_protocol.spatial.places import degrees_of
from hushcast_protocol.spatial.weight_table import idf, sign_table

SUBSCRIPTIONS, MESSAGES = 1_000_000, 2_000
TARGET = 0.8  # of the rate with ASCII alone
_OWNER = Seed(bytes([7]) * 32)
_CYRILLIC = {ord("a") + at: ord("а") + at for at in range(26)}
"""Letter for letter, so that the same subscriptions want the same messages."""


@dataclass(frozen=True)
class _Side:
    """One batch, and subscriptions in a file of lines."""

    file: Path
    feed: ProviderBatch
    rule: WordRule
    count: int

    def rate(self) -> float:
        """Return the subscriptions a second of a processor, from the file to who wants what."""
        gc.collect()
        began = time.process_time()
        found = matches(self.feed, list(read_subscriptions(self.file, self.rule).values()))
        taken = time.process_time() - began
        assert len(found) == self.count
        assert any(found)
        return self.count / taken


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure the same subscriptions in two alphabets, and by both rules of words."""
    count, runs = effort.amount(SUBSCRIPTIONS), min(effort.runs, 3)
    with tempfile.TemporaryDirectory() as folder:
        ascii_file, other_file = Path(folder, "ascii.jsonl"), Path(folder, "other.jsonl")
        workload = Workload(np.random.default_rng(1))
        said = workload.messages(MESSAGES, 1)
        plain = _feed([one.words for one in said], said)
        crowd = workload.crowd(count, plain.table)
        _write(crowd, ascii_file, {})
        _write(crowd, other_file, _CYRILLIC)
        del crowd
        mapped = [replace(one, words=tuple(sorted(_in(one.words, _CYRILLIC)))) for one in said]
        other = _feed([one.words for one in mapped], mapped)
        sides = {
            "other": _Side(other_file, other, WordRule.SCRIPTS, count).rate,
            "ascii": _Side(ascii_file, plain, WordRule.SCRIPTS, count).rate,
            "before": _Side(ascii_file, plain, WordRule.RUNS, count).rate,
        }
        rates = alternate(runs, sides)
    name = f"{count:,} subscriptions read from lines and matched with {MESSAGES:,} messages, a second"
    yield at_least(f"{name}, letters beyond ASCII", rates["other"], "ASCII alone", rates["ascii"], TARGET)
    yield at_least(f"{name}, ASCII by rule 2", rates["ascii"], "by rule 1", rates["before"], TARGET)


def _in(words: tuple[str, ...], alphabet: dict[int, int]) -> list[str]:
    return [word.translate(alphabet) for word in words]


def _feed(words: list[tuple[str, ...]], said: list[LocatedMessage]) -> ProviderBatch:
    weights, other = idf(words)
    table = sign_table(_OWNER, 1, weights, other, greatest_distance())
    _, batch, root = read_batch(encode(make_batch(_OWNER, BatchInterval(0, 300, None), table, 4, said)))
    return ProviderBatch(batch, root, table)


def _write(crowd: Crowd, file: Path, alphabet: dict[int, int]) -> None:
    names = _in(tuple(crowd.names), alphabet)
    words, starts, places = crowd.words.tolist(), crowd.starts.tolist(), crowd.places.T.tolist()
    with file.open("w") as stream:
        for at, (x, y, z) in enumerate(places):
            latitude, longitude = degrees_of((x, y, z))
            keywords = [names[word] for word in words[starts[at] : starts[at + 1]]]
            line = {"id": str(at), "lat": latitude, "lon": longitude, "keywords": keywords}
            line |= {"alpha": 0.5, "threshold": 0.7}
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
