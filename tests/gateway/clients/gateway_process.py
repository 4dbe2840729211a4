"""A gateway without a daemon, as a process that can be killed and started again."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from mqtt_client import WITHIN, Server
from ports import free_port


class GatewayProcess:
    """Listens on a port for TCP and one for WebSockets; everybody may do all."""

    def __init__(self, directory: Path) -> None:
        self.server = Server(free_port(), free_port())
        self._log, self._config = directory / "log", directory / "gateway.toml"
        self._config.write_text(
            f'program = "gateway"\nstate = "{directory}/state"\n'
            f'[[listen]]\nkind = "tcp"\nport = {self.server.port}\n'
            f'[[listen]]\nkind = "ws"\nport = {self.server.ws_port}\n'
            '[anonymous]\npublish = ["#"]\nsubscribe = ["#"]\n'
            '[log]\nlevel = "debug"\n'
        )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "hushcast_gateway", str(self._config)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            for port in (self.server.port, self.server.ws_port):
                wait_for(port)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def wait_for(port: int) -> None:
    """Return when somebody listens at a port."""
    until = time.monotonic() + WITHIN
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < until, "nobody listens"
            time.sleep(0.05)
        else:
            return
