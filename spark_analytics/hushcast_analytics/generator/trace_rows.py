"""Rows: observations and truths of one piece of work, as Arrow batches with the columns of the tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from hushcast_analytics.generator.box_hosts import sights
from hushcast_analytics.generator.draws import hexes, uniform
from hushcast_analytics.generator.edges import DROPPED
from hushcast_analytics.generator.installs import install
from hushcast_analytics.generator.message_routes import OUTCOMES, RouteArrays, route
from hushcast_analytics.generator.presence import listed, presence
from hushcast_analytics.generator.publications import PublicationArrays, publish
from hushcast_analytics.generator.scenario import EPOCH_SECONDS, GeneratorScenario
from hushcast_analytics.generator.tree_epochs import begins, tellings
from hushcast_analytics.generator.tree_repair import NONE, Hops, Numbers
from hushcast_analytics.generator.tree_seats import subscribers
from hushcast_analytics.marks import lease_mark
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY, OBSERVATIONS, TRUTHS
from hushcast_protocol.overlay.tree import branching

BODY = 1167  # bytes of a sealed body with up to 1 KiB in it
TOKENS = 8  # of a message as it is dropped: the trunk, and what pads it
ROSTER_WITHIN = 60.0  # seconds into an epoch in which daemons take its roster

_OBSERVATIONS, _TRUTHS = to_arrow_schema(OBSERVATIONS), to_arrow_schema(TRUTHS)


class TraceRows:
    """The rows of one run."""

    def __init__(self, asked: GeneratorScenario) -> None:
        self._asked = asked

    # What follows from presence.

    def seen_of_rosters(self, epoch: int) -> Iterator[pa.RecordBatch]:
        """Observations of the roster of an epoch, by all daemons that are there."""
        asked, there = self._asked, presence(self._asked)[:, epoch]
        daemons = np.flatnonzero(there)
        relays = np.flatnonzero(listed(asked)[:, epoch])
        names = _names(asked)
        order = pc.array_sort_indices(names.take(pa.array(relays))).to_numpy()
        members = names.take(pa.array(relays[order]))
        # The first relay on the roster that is there writes down whom it lists.
        awake = relays[order][there[relays[order]]]
        first = awake[0] if len(awake) else DROPPED
        lists = pa.ListArray.from_arrays(
            pa.array(np.cumsum(np.r_[0, (daemons == first) * len(relays)]), pa.int32()), members,
            mask=pa.array(daemons != first),
        )  # fmt: skip
        yield self._observations(
            "roster",
            daemons,
            epoch * EPOCH_SECONDS + ROSTER_WITHIN * uniform(asked.seed, "takes roster", daemons, epoch),
            relays=np.full(len(daemons), len(relays)),
            listed=lists,
        )

    def truth_of_presence(self, epoch: int) -> Iterator[pa.RecordBatch]:
        """Truths of the daemons that come and go at the beginning of an epoch."""
        asked, there = self._asked, presence(self._asked)
        before = there[:, epoch - 1] if epoch else np.zeros(asked.daemons, dtype=np.bool_)
        for kind, changed in (("started", ~before & there[:, epoch]), ("stopped", before & ~there[:, epoch])):
            daemons = np.flatnonzero(changed)
            role = pa.array(["relay", "client"]).take(pa.array((daemons >= asked.nodes).astype(np.int8)))
            moment = np.full(len(daemons), epoch * float(EPOCH_SECONDS))
            profile = pa.array([asked.profile]).take(pa.array(np.zeros(len(daemons), dtype=np.int8)))
            yield self._truths(kind, daemons, moment, role=role, profile=profile)

    # What follows from subscriptions.

    def seen_of_install(self, topic: int, day: int, subscriber: int) -> Iterator[pa.RecordBatch]:
        """Observations of relays that take a subscriber's instructions for a day, and pass them on."""
        asked, names = self._asked, self._hop_names(topic)
        leases = hexes(asked.seed, "lease", 16, topic, day, subscriber, np.arange(asked.nodes))
        for telling in tellings(asked, topic, day, subscriber):
            seats = install(asked, topic, day, subscriber, telling)
            below = seats.above != NONE
            yield self._observations(
                "parcel", seats.relay, seats.moment, size=seats.size, children=seats.children
            )
            yield self._observations(
                "installed",
                seats.relay,
                seats.moment,
                lease=leases.take(pa.array(seats.relay)),
                mark=_marks(asked, topic, day).take(pa.array(seats.relay)),
                day=np.full(len(seats.relay), day),
                previous=names.take(pa.array(np.where(below, seats.above, 0), mask=~below)),
                next=names.take(pa.array(seats.hop)),
                elements=seats.elements,
                children=seats.children,
            )
            of = np.empty(asked.nodes)
            of[seats.relay] = seats.moment
            yield self._observations(
                "passed",
                seats.above[below],
                of[seats.above[below]],
                lease=leases.take(pa.array(seats.above[below])),
                next=names.take(pa.array(seats.relay[below])),
            )

    def truth_of_install(self, topic: int, day: int, subscriber: int) -> Iterator[pa.RecordBatch]:
        """Truths of a subscriber that subscribes, once, and plans and mends its tree for a day."""
        asked = self._asked
        daemon = subscribers(asked, topic)[subscriber : subscriber + 1]
        mailbox = self._mailboxes(topic).slice(subscriber, 1)
        label = pa.array([_label(topic)])
        tokens = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), self._trunk(topic, day, 2))
        for number, telling in enumerate(tellings(asked, topic, day, subscriber)):
            moment = np.array([telling.moment])
            if day == number == 0:
                yield self._truths("subscribed", daemon, moment, topic=label, mailbox=mailbox)
            if telling.changed:
                yield self._truths(
                    "installed", daemon, moment, topic=label, mailbox=mailbox, tree=self._tree(telling.hops),
                    tokens=tokens, day=np.array([day]), depth=np.array([asked.behaviour.depth]),
                )  # fmt: skip

    def seen_of_boxes(self, topic: int, subscriber: int) -> Iterator[pa.RecordBatch]:
        """Observations of the hosts of a subscription's boxes: leases, and owners that come and go."""
        asked = self._asked
        above = branching(asked.nodes - 1, asked.behaviour.depth) + 2
        for kind, of_kind in groupby(
            sorted(sights(asked, topic, subscriber), key=lambda sight: (sight.kind, sight.day)),
            key=lambda sight: (sight.kind, sight.day),
        ):
            seen = list(of_kind)
            host, box = np.array([one.host for one in seen]), np.array([one.box for one in seen])
            fields: dict[str, Any] = {"next": self._boxes(topic, subscriber, box)}
            if kind[0] == "installed":
                day = np.array([one.day for one in seen])
                fields |= {
                    "lease": hexes(asked.seed, "box lease", 16, topic, subscriber, day, host),
                    "mark": _marks(asked, topic, kind[1]).take(pa.array(host)),
                    "day": day,
                    "elements": np.full(len(seen), above),
                    "children": np.zeros(len(seen), np.int64),
                }
            yield self._observations(kind[0], host, np.array([one.moment for one in seen]), **fields)

    def truth_of_boxes(self, topic: int, subscriber: int) -> Iterator[pa.RecordBatch]:
        """Truths of a subscriber whose boxes are kept by hosts, without its trees."""
        asked, label = self._asked, pa.array([_label(topic)])
        daemon = subscribers(asked, topic)[subscriber : subscriber + 1]
        for day in range(asked.days):
            box = self._boxes(topic, subscriber, np.array([day if asked.fresh_boxes else 0]))
            moment = np.array([begins(asked, topic, day, subscriber)])
            if day == 0 or asked.fresh_boxes:
                yield self._truths("subscribed", daemon, moment, topic=label, mailbox=box)
            yield self._truths(
                "installed", daemon, moment, topic=label, mailbox=box, day=np.array([day]),
                tokens=pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), self._trunk(topic, day, 2)),
                depth=np.array([asked.behaviour.depth]),
            )  # fmt: skip

    def _tree(self, hops: Hops) -> pa.MapArray:
        """One tree, as truths have it."""
        names, seated = _names(self._asked), np.flatnonzero(hops != NONE)
        above = hops[seated]
        # A mailbox is no relay, and a listed root has no seat in its own tree.
        top = (above >= len(hops)) | (hops[np.minimum(above, len(hops) - 1)] == NONE)
        values = names.take(pa.array(np.where(top, 0, above), mask=top))
        return pa.MapArray.from_arrays(
            pa.array([0, len(seated)], pa.int32()), names.take(pa.array(seated)), values
        )

    # What follows from publications.

    def seen_of_messages(self, topic: int, epoch: int, message: Numbers) -> Iterator[pa.RecordBatch]:
        """Observations of messages of one topic and epoch, from drop to delivery."""
        asked = self._asked
        published = publish(asked, topic, epoch, message)
        routes, names = route(asked, topic, epoch, published.drops), self._hop_names(topic)
        ids = hexes(asked.seed, "message", 32, message)
        drops, came = published.drops, routes.arrivals
        full = self._full_tokens(topic, epoch, message)
        at = np.searchsorted(message, drops.message)
        yield self._observations(
            "drop", drops.relay, drops.time, message=ids.take(pa.array(at)), tokens=full.take(pa.array(at)),
            size=np.full(len(at), BODY),
        )  # fmt: skip
        entered = came.previous == DROPPED
        for kind in (entered, ~entered):
            of = np.searchsorted(message, came.message[kind])
            hidden = came.previous[kind] == DROPPED
            yield self._observations(
                "received",
                came.relay[kind],
                came.time[kind],
                message=ids.take(pa.array(of)),
                tokens=full.take(pa.array(of)) if kind is entered else self._tokens(topic, epoch, len(of)),
                previous=names.take(pa.array(np.where(hidden, 0, came.previous[kind]), mask=hidden)),
                outcome=pa.array(OUTCOMES).take(pa.array(came.outcome[kind])),
                popcount=came.popcount[kind],
                size=np.full(len(of), BODY),
            )
        yield from self._seen_going(routes, topic, epoch, message, ids, names)

    def _seen_going(
        self, routes: RouteArrays, topic: int, epoch: int, message: Numbers, ids: pa.Array, names: pa.Array
    ) -> Iterator[pa.RecordBatch]:
        went, ended = routes.transmissions, routes.deliveries
        sent = np.isfinite(went.time)
        of = np.searchsorted(message, went.message[sent])
        yield self._observations(
            "sent", went.relay[sent], went.time[sent], message=ids.take(pa.array(of)),
            tokens=self._tokens(topic, epoch, len(of)), next=names.take(pa.array(went.hop[sent])),
        )  # fmt: skip
        if went.waited.any():
            yield self._observations(
                "unreached", went.relay[went.waited], went.asked[went.waited],
                next=names.take(pa.array(went.hop[went.waited])),
            )  # fmt: skip
        of = np.searchsorted(message, ended.message)
        yield self._observations(
            "delivered", subscribers(self._asked, topic)[ended.subscriber], ended.time,
            message=ids.take(pa.array(of)), tokens=self._tokens(topic, epoch, len(of)),
            size=np.full(len(of), BODY),
        )  # fmt: skip

        came = routes.copies
        of = np.searchsorted(message, came.message)
        yield self._observations(
            "arrived", subscribers(self._asked, topic)[came.subscriber], came.time,
            message=ids.take(pa.array(of)), tokens=self._tokens(topic, epoch, len(of)),
            previous=names.take(pa.array(came.previous)), popcount=came.popcount,
            size=np.full(len(of), BODY),
        )  # fmt: skip

    def truth_of_messages(self, topic: int, epoch: int, message: Numbers) -> Iterator[pa.RecordBatch]:
        """Truths of authors that publish, and of subscribers that receive."""
        asked = self._asked
        published = publish(asked, topic, epoch, message)
        ids = hexes(asked.seed, "message", 32, message)
        label = pa.array([_label(topic)])
        yield self._truths(
            "published", published.author, published.settled, message=ids, origins=self._origins(published),
            topic=label.take(pa.array(np.zeros(len(message), dtype=np.int8))),
            took=published.settled - published.asked,
        )  # fmt: skip
        ended = route(asked, topic, epoch, published.drops).deliveries
        yield self._truths(
            "delivered", subscribers(asked, topic)[ended.subscriber], ended.time,
            message=ids.take(pa.array(np.searchsorted(message, ended.message))),
            topic=label.take(pa.array(np.zeros(len(ended.time), dtype=np.int8))),
        )  # fmt: skip

    # How things are called.

    def _origins(self, published: PublicationArrays) -> pa.Array:
        count, each = published.origins.shape
        offsets = pa.array(np.arange(count + 1) * each, pa.int32())
        return pa.ListArray.from_arrays(
            offsets, _names(self._asked).take(pa.array(published.origins.ravel()))
        )

    def _mailboxes(self, topic: int) -> pa.Array:
        return hexes(self._asked.seed, "mailbox", 32, topic, np.arange(self._asked.subscribers))

    def _boxes(self, topic: int, subscriber: int, number: Numbers) -> pa.Array:
        return hexes(self._asked.seed, "box", 32, topic, subscriber, number)

    def _hop_names(self, topic: int) -> pa.Array:
        relays = _names(self._asked).slice(0, self._asked.nodes)
        return pa.concat_arrays([relays, self._mailboxes(topic)])

    def _trunk(self, topic: int, day: int, count: int) -> pa.Array:
        return _trunk(self._asked, topic, day, count)

    def _tokens(self, topic: int, epoch: int, count: int) -> pa.Array:
        """The trunk alone, as messages carry it in a tree."""
        trunk = self._trunk(topic, epoch // EPOCHS_A_DAY, 1)
        values = trunk.take(pa.array(np.zeros(count, dtype=np.int8)))
        return pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), values)

    def _full_tokens(self, topic: int, epoch: int, message: Numbers) -> pa.Array:
        """The trunk, then random tokens, as messages are dropped."""
        count = len(message)
        trunk = self._trunk(topic, epoch // EPOCHS_A_DAY, 1)
        of, number = np.repeat(message, TOKENS - 1), np.tile(np.arange(TOKENS - 1), count)
        padding = hexes(self._asked.seed, "padding", 16, of, number)
        place = np.arange(count * TOKENS)
        place = np.where(place % TOKENS, place - place // TOKENS, 0)
        values = pa.concat_arrays([trunk, padding]).take(pa.array(place))
        return pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * TOKENS, pa.int32()), values)

    # How they become rows.

    def _observations(self, kind: str, node: Numbers, time: Any, **fields: Any) -> pa.RecordBatch:
        return _batch(_OBSERVATIONS, self._asked, kind, node, time, fields)

    def _truths(self, kind: str, node: Numbers, time: Any, **fields: Any) -> pa.RecordBatch:
        return _batch(_TRUTHS, self._asked, kind, node, time, fields)


@lru_cache(maxsize=2)
def _names(asked: GeneratorScenario) -> pa.Array:
    """What relays and clients are called."""
    keys = hexes(asked.seed, "relay", 32, np.arange(asked.nodes))
    clients = pa.array([f"client-{number}" for number in range(asked.client_count)], pa.string())
    return pa.concat_arrays([keys, clients])


def _trunk(asked: GeneratorScenario, topic: int, day: int, count: int) -> pa.Array:
    """A topic's trunk token for a day, so many times."""
    return hexes(asked.seed, "token", 16, topic, np.full(count, day))


@lru_cache(maxsize=2)
def _marks(asked: GeneratorScenario, topic: int, day: int) -> pa.Array:
    """The mark that leases of a topic and day have at each relay, whoever's subscription they are of."""
    trunk = bytes.fromhex(_trunk(asked, topic, day, 1)[0].as_py())
    relays = _names(asked).slice(0, asked.nodes).to_pylist()
    return pa.array([lease_mark(trunk, bytes.fromhex(relay)).hex() for relay in relays], pa.string())


def _label(topic: int) -> str:
    return f"topic {topic}"


def _batch(
    schema: pa.Schema, asked: GeneratorScenario, kind: str, node: Numbers, time: Any, fields: dict[str, Any]
) -> pa.RecordBatch:
    count = len(node)
    nothing = pa.array(np.zeros(count, dtype=np.int8))
    known = {
        "run": pa.array([asked.run]).take(nothing),
        "node": _names(asked).take(pa.array(node)),
        "time": np.round(time, 6),
        "epoch": (np.asarray(time) // EPOCH_SECONDS).astype(np.int64),
        "kind": pa.array([kind]).take(nothing),
        **fields,
    }
    columns = []
    for field in schema:
        column = known.get(field.name)
        if column is None:
            columns.append(pa.nulls(count, field.type))
        else:
            column = column if isinstance(column, pa.Array) else pa.array(column)
            columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
