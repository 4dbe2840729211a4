"""The section `[testnet]`: what a testnet's daemons are told besides, and would be dangerous elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.ground_truth import Named
from hushcast_runtime.environment import Environment, system_environment
from hushcast_runtime.processes.config import DaemonSettings, PathText, Section
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.endpoints import Endpoint, parse_endpoint
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_runtime.transports.tcp import TcpTransport


class TestnetSection(Section, frozen=True, kw_only=True):
    """Only for daemons of a testnet: what would be dangerous elsewhere."""

    name: Annotated[PathText, msgspec.Meta(min_length=1, max_length=32)]
    """The daemon's name in the testnet."""
    traces: PathText
    """Directory for traces: everything that this daemon sees and does, in clear."""
    began: float
    """Unix time from which traces count."""
    clock: PathText | None = None
    """A file with the seconds by which this daemon's clock is wrong, for trials of faults."""
    host: str = LOOPBACK
    """With transport tcp: the loopback address that this daemon listens at and connects from."""
    path: str | None = None
    """With transport tcp: `127.0.0.1:PORT` of the relay that its connections pass, for trials of faults."""

    def check(self, transport: str) -> None:
        """Raise `UsageError` if these settings do not fit the transport."""
        if transport != "tcp" and (self.path is not None or self.host != LOOPBACK):
            raise UsageError("testnet: host and path belong to transport tcp")
        try:
            Endpoint(host=self.host, port=1)
            if self.path is not None:
                parse_endpoint(self.path)
        except UsageError:
            raise UsageError("testnet: host is a loopback address, and path one with its port") from None


class TestnetDaemonSettings(DaemonSettings, frozen=True, kw_only=True):
    """Settings of the daemons that a testnet watches."""

    testnet: TestnetSection | None = None

    @property
    def is_watched(self) -> bool:
        """Whether this daemon is one of a testnet."""
        return self.testnet is not None

    def tcp(self) -> TcpTransport:
        """Return the transport for trials on one machine, with the faults that a testnet tries."""
        if self.testnet is None:
            return TcpTransport()
        path = parse_endpoint(self.testnet.path) if self.testnet.path else None
        return TcpTransport(self.testnet.host, path)

    def environment(self) -> Environment:
        """Return the environment of this daemon, whose clock a testnet may set wrong."""
        clock = self.testnet.clock if self.testnet is not None else None
        return system_environment(Path(clock) if clock is not None else None)

    def tracer(self, node: str | None, epoch_seconds: int, env: Environment) -> Tracer:
        """Return where this daemon writes what it sees; `node` is what others know it by, if they do."""
        testnet = self.testnet
        if testnet is None:
            return NoTracer()
        from hushcast_runtime.file_tracer import FileTracer

        name = testnet.name
        tracer = FileTracer(Path(testnet.traces), name, node or name, testnet.began, epoch_seconds, env)
        tracer.tell(Named(name))
        return tracer

    def check(self) -> None:
        """Raise `UsageError` if these settings cannot be used, or contradict each other."""
        super().check()
        if self.testnet is not None:
            self.testnet.check(self.transport)
