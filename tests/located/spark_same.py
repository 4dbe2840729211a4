"""What both engines have to agree on: answers and lists for one batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from languages import KEYWORDS, TEXTS

from hushcast_located.file_provider import LIST, answer_all, list_all
from hushcast_located.input_lines import read_subscriptions
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_protocol.spatial.batch import BatchInterval, make_batch, read_batch
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_messages import LocatedMessage, read_message
from hushcast_protocol.spatial.places import chord, place_of
from hushcast_protocol.spatial.weight_table import idf, sign_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES, SUBSCRIPTIONS = 60, 80 + len(KEYWORDS)
_WORDS = [f"word{number}" for number in range(25)]
_OWNER = Seed(bytes([7]) * 32)


def feed() -> tuple[PublicKey, ProviderBatch]:
    """A batch of messages around a town."""
    random = Random("feed")
    said = [
        LocatedMessage(1, str(at), _place(random), tuple(sorted(random.sample(_WORDS, 6))), b"text")
        for at in range(MESSAGES)
    ]
    said += [read_message(json.dumps(one).encode(), 1) for one in texts()]
    weights, other = idf(one.words for one in said)
    table = sign_table(_OWNER, 1, weights, other, chord(100))
    owner, batch, root = read_batch(encode(make_batch(_OWNER, BatchInterval(0, 300, None), table, 4, said)))
    return owner, ProviderBatch(batch, root, table)


def _place(random: Random) -> tuple[int, int, int]:
    return place_of(60 + random.random(), 25 + random.random())


def rows() -> list[dict[str, Any]]:
    """Subscriptions, as people write them."""
    random = Random("rows")
    return [
        {
            "id": f"s{number}",
            "lat": 60 + random.random(),
            "lon": 25 + random.random(),
            "keywords": random.sample(_WORDS, random.randint(1, 5)),
            "alpha": random.choice((0.1, 0.5, 0.9, 1.0)),
            "threshold": random.choice((0.5, 0.7, 0.9)),
        }
        for number in range(80)
    ] + asking()


def texts() -> list[dict[str, Any]]:
    """A message for each sentence, as an owner writes it."""
    return [{"id": f"k{at}", "lat": 10, "lon": 10, "text": text} for at, text in enumerate(TEXTS)]


def asking() -> list[dict[str, Any]]:
    """For each sentence somebody who wants messages with all of its keyword, wherever they are."""
    here = {"lat": 10, "lon": 10, "alpha": 1, "threshold": 1}
    return [{"id": f"k{at}", "keywords": [keyword], **here} for at, (_, keyword) in enumerate(KEYWORDS)]


def _lines(some: list[dict[str, Any]], file: Path) -> None:
    file.write_text("".join(json.dumps(one) + "\n" for one in some))


def by_spark(
    spark: SparkSession,
    folder: Path,
    name: str = "subscriptions.jsonl",
    write: Callable[[list[dict[str, Any]], Path], None] = _lines,
    proofs: bool = True,
) -> dict[str, list[str]]:
    """Answers and lists of Spark's: what each answer hashes to by its id, and sorted lines."""
    from hushcast_located.spark_engine import PARTS, match

    write(rows(), folder / name)
    out = folder / "by-spark"
    done = match(spark, feed(), folder / name, out, False)
    lists = [line for part in (out / PARTS).iterdir() for line in part.read_text().splitlines()]
    assert done.answers == len(lists) == SUBSCRIPTIONS
    if proofs:
        assert match(spark, feed(), folder / name, out, True).messages == done.messages
    return {"answers": _answers(out), "lists": sorted(lists)}


def by_local(folder: Path) -> dict[str, list[str]]:
    """The same by this process."""
    file, out = folder / "here.jsonl", folder / "by-local"
    _lines(rows(), file)
    _, of = feed()
    subscriptions = read_subscriptions(file)
    answer_all(of, subscriptions, out)
    list_all(of, subscriptions, out)
    return {"answers": _answers(out), "lists": sorted((out / LIST).read_text().splitlines())}


def _answers(out: Path) -> list[str]:
    return sorted(
        f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in out.glob("*.answer")
    )
