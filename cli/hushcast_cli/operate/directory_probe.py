"""`hushcast admin directory probe`: finds relays that lose messages, for a directory that leaves them out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import config_option, node_option, number_option, socket_option

if TYPE_CHECKING:
    import trio

    from hushcast.daemon import Daemon
    from hushcast_directory.server.hidden_subscriptions import HiddenSubscriptions
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_protocol.authorities.expulsion import LossTrial
    from hushcast_runtime.processes.readiness import Health

MOST_HIDDEN = 64  # `MAX_HIDDEN`, which loads what `--help` need not wait for
LEAST_HIDDEN = 6  # with fewer, `MIN_TRIALS` do not come together while they count


@click.command("probe")
@config_option("The directory's configuration, whose `expelled` names the list; the usual one unless given.")
@number_option("--subscriptions", LEAST_HIDDEN, MOST_HIDDEN, default=8, help="Keep N hidden subscriptions.")
@socket_option
@node_option
@pass_choices
def probe(choices: Choices, config: Path | None, subscriptions: int) -> None:
    """Find relays that lose messages, and list them for this directory to leave out, until SIGTERM or Ctrl-C.

    Keeps hidden subscriptions at the daemon of --socket, to topics that nobody else knows, and judges each
    relay by what became of the probes that passed it. Who loses messages in more than half of the trees that
    it was met in stands in the file `expelled` of the configuration for seven days; the directory reads it
    while it runs. The daemon should serve nobody else, as a client of the same network, and probe about as
    often in an epoch as there are relays (`coverage.probes_an_epoch`). It is waited for.

    \b
    Example:
      hushcast admin directory probe --config directory.toml --socket /run/hushcast/probe/control.sock
    """
    from hushcast_cli.chosen_daemon import chosen_socket
    from hushcast_cli.configuration.places import config_of
    from hushcast_runtime.processes.process import run_until_signal

    file = config_of("directory", config)

    def load() -> DirectorySettings:
        return _own(file)

    process = _Process(load(), chosen_socket(choices), subscriptions)
    run_until_signal(process.settings, load, process.live, process.health)


def _own(file: Path) -> DirectorySettings:
    """Return the directory's settings with the list's folder as state; raise `UsageError`."""
    import msgspec

    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(file, DirectorySettings)
    if settings.expelled is None:
        raise UsageError(f"{file}: expelled: name the file that the list of expelled relays is to be in")
    folder = Path(settings.expelled).absolute().parent
    if folder == settings.state_path().absolute():
        raise UsageError(f"{file}: expelled: the list has a folder of its own, not the directory's state")
    return msgspec.structs.replace(settings, state=str(folder))


class _Process:
    """One process that probes."""

    def __init__(self, settings: DirectorySettings, socket: Path | None, subscriptions: int) -> None:
        self.settings = settings
        self._socket = socket
        self._subscriptions = subscriptions
        self._hidden: HiddenSubscriptions | None = None

    async def live(self, nursery: trio.Nursery) -> None:
        """Probe until the nursery is cancelled."""
        from hushcast.daemon import connect
        from hushcast_directory.server.hidden_subscriptions import HiddenSubscriptions
        from hushcast_protocol.base.errors import UsageError
        from hushcast_runtime.environment import system_environment

        settings = self.settings
        network = settings.network.network()
        async with connect(self._socket, timeout=math.inf, wait=True) as daemon:
            served = (await daemon.status())["network"]
            if served != network.name:
                raise UsageError(
                    f"the daemon is of the network {served}, and the directory of {network.name}"
                )
            assert settings.expelled is not None
            self._hidden = HiddenSubscriptions(
                _Through(daemon),
                network.calendar,
                system_environment(),
                Path(settings.expelled),
                self._subscriptions,
            )
            await self._hidden.run()

    def health(self) -> Health:
        """Tell how far it is."""
        from hushcast_runtime.processes.readiness import Health
        from hushcast_runtime.wording import counted

        probing = self._hidden
        if probing is None:
            return Health(True, "waiting for the daemon")
        if probing.problem is not None:
            return Health(True, "the daemon did not do what was asked: see the log")
        return Health(True, f"working, {counted(probing.trials, 'trial counts', 'trials count')}")


class _Through:
    """A daemon as `HiddenSubscriptions` needs it, over its control socket."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def subscribe(self, topic: str) -> None:
        async with self._daemon.subscribe(topic, acknowledge="never"):
            pass  # the subscription stays in the daemon

    async def unsubscribe(self, topic: str) -> None:
        await self._daemon.unsubscribe(topic)

    async def losses(self, topic: str) -> LossTrial | None:
        from hushcast_protocol.base.errors import Refusal

        try:
            told = await self._daemon.coverage(topic, losses=True)
        except Refusal:  # there is no such subscription
            return None
        counts = told[0].described["losses"]
        return {bytes.fromhex(relay): (lost, passed) for relay, (lost, passed) in counts.items()}
