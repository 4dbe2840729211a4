"""The shards of a network that nobody runs: drawn on Spark, told as figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hushcast_cli.analysis.spark import check_spark, spark_session, told
from hushcast_cli.output import json_line, text_line, write
from hushcast_cli.progress import reporting
from hushcast_protocol.shards.cost import topic_day


def draw(asked: dict[str, Any], moving: dict[str, float] | None, master: str | None, as_json: bool) -> None:
    """Draw and print; `asked` has the fields of the analysis's `ShardScenario`, `None` where none was said.

    `moving` has those of `ChurnModel`, where relays do.
    """
    check_spark()
    from hushcast_analytics.shards.presence_suspects import ChurnModel, named
    from hushcast_analytics.shards.shard_draws import ShardScenario, shard_days
    from hushcast_analytics.shards.shard_figures import figures

    with told():
        wanted = ShardScenario(**{name: value for name, value in asked.items() if value is not None})
        going = ChurnModel(**moving) if moving is not None else None
    cost = topic_day(wanted.bits)
    with reporting() as progress, spark_session(master, progress) as spark:
        progress(f"drawing the shards of {wanted.relays} relays")
        made = figures(shard_days(spark, wanted), cost.fixed, cost.a_relay)
        who = None
        if going is not None:
            progress("looking whom presence names")
            who = named(spark, wanted, going)
    if as_json:
        write(json_line(asdict(made) | (asdict(who) if who is not None else {})))
        return
    above = f"{made.above_15} with more than 15 % colluding, {made.above_20} with more than 20 %"
    write(text_line(f"{made.shard_days} shard-days: {above}"))
    write(text_line(f"{made.smallest} to {made.largest} relays in a shard"))
    write(text_line(f"{made.client_bytes} bytes for a client, each topic and day"))
    if who is not None:
        kept = f"{who.named_staying:.1%} with one that stays"
        write(text_line(f"{who.named_fresh:.1%} of relays named by presence with fresh mailboxes, {kept}"))
