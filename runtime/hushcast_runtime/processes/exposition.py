"""A daemon's counters and gauges as they stand, in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from hushcast_runtime.counters import Counters

PREFIX = "hushcast_"
BUILD = "build_info"

Readings = Callable[[], Mapping[str, float]]
"""Gives the values of gauges by name."""


class Exposition:
    """Tells counters, if there are any, and the gauges that `readings` gives, with their meanings."""

    CONTENT_TYPE = CONTENT_TYPE_LATEST

    def __init__(
        self,
        counters: Counters | None,
        readings: Readings,
        gauges: Mapping[str, str],
        build: Mapping[str, str],
    ) -> None:
        # A registry of our own: the library's default one has metrics of the process, including its start.
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collected(counters, readings, gauges, build))

    def text(self) -> bytes:
        """Return what a scraper is told now."""
        return generate_latest(self._registry)


class _Collected(Collector):
    def __init__(
        self,
        counters: Counters | None,
        readings: Readings,
        gauges: Mapping[str, str],
        build: Mapping[str, str],
    ) -> None:
        self._build = build
        self._counters = counters
        self._readings = readings
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """Yield what the program is, every gauge that has a value, then every counter."""
        info = GaugeMetricFamily(PREFIX + BUILD, self._gauges[BUILD], labels=list(self._build))
        info.add_metric(list(self._build.values()), 1.0)
        yield info
        for name, value in self._readings().items():
            yield GaugeMetricFamily(PREFIX + name, self._gauges[name], value=value)
        if (counters := self._counters) is not None:
            for name, count in counters.as_dict().items():
                yield CounterMetricFamily(PREFIX + name, counters.meanings[name], value=count)
