"""Research: an own query over the tables of traces, with pandas and with PySpark, and an own attack.

    python examples/research.py /tmp/analysis/tables
    hushcast lab analyze /tmp/traces --out /tmp/analysis --attack research:busiest_hop

The query asks of each run at how many relays a message was, in the mean and at most. The attack names the
relay to which colluders sent most of a topic's messages. docs/your-own-query.md explains both.
"""

from __future__ import annotations

import argparse

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.own_attack import own_attack
from hushcast_analytics.attacks.tree_evidence import counts
from hushcast_analytics.posteriors import shared_by
from hushcast_analytics.spark_session import open_session
from hushcast_analytics.trace_files import load
from hushcast_analytics.trace_sources import look

AT_A_RELAY = ["received", "drop"]  # kinds of rows: from another relay, and from outside


def spread_with_pandas(tables: str) -> pd.DataFrame:
    """Read what one machine's memory holds: these columns of these rows alone."""
    columns = ["run", "node", "message"]
    rows = pd.read_parquet(f"{tables}/observations", columns=columns, filters=[("kind", "in", AT_A_RELAY)])
    relays = rows.astype({"run": str}).groupby(["run", "message"])["node"].nunique()
    return relays.groupby("run").agg(mean="mean", most="max").reset_index()


def spread_with_spark(spark: SparkSession, tables: str) -> DataFrame:
    """Ask the same of tables of any size, on any number of machines."""
    rows = load(spark, tables).observations.where(F.col("kind").isin(AT_A_RELAY))
    relays = rows.groupBy("run", "message").agg(F.countDistinct("node").alias("relays"))
    figures = relays.groupBy("run").agg(F.avg("relays").alias("mean"), F.max("relays").alias("most"))
    return figures.orderBy("run")


@own_attack("topic")
def busiest_hop(view: AdversaryView) -> DataFrame:
    """Take the next hop that colluders sent most of a topic's messages to for the topic's subscriber."""
    sent = counts(view, view.observations).groupBy("run", "trial", F.col("next").alias("candidate"))
    return shared_by(sent.agg(F.sum("messages").alias("votes")), view)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Show at how many relays messages were.")
    parser.add_argument("tables", help="the folder with the tables observations, truths and rejected")
    folder = parser.parse_args().tables
    print("pandas ", spread_with_pandas(folder).to_dict("records"))
    session = open_session(rows=look(folder))
    print("PySpark", [row.asDict() for row in spread_with_spark(session, folder).collect()])
    session.stop()
