"""Publications: which messages, by whom, when, dropped where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushcast_analytics.generator.draws import Floats, uniform, words
from hushcast_analytics.generator.message_routes import LONGEST_WAY, SHORTEST_WAY, DropArrays
from hushcast_analytics.generator.presence import listed, presence
from hushcast_analytics.generator.scenario import EPOCH_SECONDS, GeneratorScenario
from hushcast_analytics.generator.tree_repair import Numbers

SETTLED = (
    900.0  # seconds after the beginning before which nobody publishes: subscriptions are being installed
)
DROP_WAYS = 5.0  # ways that a drop takes over a fresh circuit: connecting, shaking hands, handing over


@dataclass(frozen=True)
class PublicationArrays:
    """Messages of one topic and epoch: asked for, dropped at `origins`, settled with the last receipt.

    `origins` and `dropped` have a row a message and a column a drop. Times are in seconds.
    """

    message: Numbers
    author: Numbers
    asked: Floats
    origins: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.float64]
    settled: Floats

    @property
    def drops(self) -> DropArrays:
        """All drops of all messages."""
        count = self.origins.shape[1]
        return DropArrays(np.repeat(self.message, count), self.origins.ravel(), self.dropped.ravel())


def numbers(asked: GeneratorScenario, topic: int, epoch: int) -> range:
    """Return the numbers of the messages of one topic and epoch: epoch after epoch, topics in turn."""
    begin, end = (-(-part * asked.publications // asked.epochs) for part in (epoch, epoch + 1))
    return range(begin + (topic - begin) % asked.topics, end, asked.topics)


def publish(asked: GeneratorScenario, topic: int, epoch: int, message: Numbers) -> PublicationArrays:
    """Return the publications with these numbers."""
    seed, there = asked.seed, presence(asked)[:, epoch]
    quiet = SETTLED if epoch == 0 else 0.0
    moment = quiet + (EPOCH_SECONDS - quiet) * uniform(seed, "moment", message)
    began = epoch * float(EPOCH_SECONDS) + moment
    author = _picked(_authors(asked, topic, there), uniform(seed, "author", message)[:, None])[:, 0]
    # Relays become origins in their second epoch on rosters.
    known = listed(asked)[:, max(0, epoch - 1) : epoch + 1].all(axis=1)
    relays = np.flatnonzero(there[: asked.nodes] & known)
    drop = np.arange(min(asked.behaviour.origins, len(relays)))
    origins = _picked(relays, uniform(seed, "origin", message[:, None], drop))
    way = SHORTEST_WAY + (LONGEST_WAY - SHORTEST_WAY) * uniform(seed, "drop", message[:, None], drop)
    dropped = began[:, None] + DROP_WAYS * way
    settled = (dropped + way).max(axis=1, initial=0.0)
    return PublicationArrays(message, author, began, origins, dropped, np.maximum(settled, began))


def _authors(asked: GeneratorScenario, topic: int, there: npt.NDArray[np.bool_]) -> Numbers:
    """Return the daemons that may publish on a topic in an epoch; all its authors, if none is there."""
    daemons = np.arange(asked.daemons)
    if asked.authors:
        chance = words(asked.seed, "author of", topic, daemons)
        daemons = np.sort(np.argsort(chance, kind="stable")[: asked.authors])
    present = daemons[there[daemons]]
    return present if len(present) else daemons


def _picked(pool: Numbers, chance: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return for each row of `chance` different members of `pool`, one a column, uniformly."""
    picked = np.empty(chance.shape, dtype=np.int64)
    for column in range(chance.shape[1]):
        place = (chance[:, column] * (len(pool) - column)).astype(np.int64)
        for before in np.sort(picked[:, :column], axis=1).T:
            place += place >= before
        picked[:, column] = place
    return pool[picked] if len(pool) else picked[:, :0]
