"""`hushcast gateway clients`, `kick`, `retained` and others: what a gateway that runs tells and does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.configuration.places import config_of
from hushcast_cli.options import config_option, json_option

if TYPE_CHECKING:
    from hushcast_gateway.operators.questions import (
        ClientLine,
        DelayedLine,
        Done,
        Line,
        Question,
        RefusedLine,
        RetainedLine,
    )

_config_option = config_option(
    "The configuration, TOML; the one that `hushcast init gateway` wrote unless given."
)


@click.command()
@click.option("--user", metavar="U", help="This user's alone; '' is for anybody.")
@_config_option
@json_option
@pass_choices
def clients(choices: Choices, user: str | None, config: Path | None) -> None:
    """List who is connected, and whose session waits.

    Of each client: its user, since when it is connected, what it sent and was sent on this connection, how
    many filters it has, and how many messages wait for it. Run it as the gateway's user or as root.

    \b
    Examples:
      hushcast gateway clients
      hushcast gateway clients --user sensor --json
    """
    from hushcast_cli.output import note
    from hushcast_gateway.operators.questions import ClientsQuestion

    if not _ask(config, ClientsQuestion(user=user), _printer(choices, _client)).count:
        note("note: nobody is connected, and no session waits")


@click.command()
@click.argument("client", metavar="CLIENT")
@click.option("--user", metavar="U", help="Whose client it is, where several users have one of this name.")
@click.option("--forget", is_flag=True, help="End its session, too: filters, and messages that wait.")
@_config_option
@json_option
@pass_choices
def kick(choices: Choices, client: str, user: str | None, forget: bool, config: Path | None) -> None:
    """Disconnect CLIENT, a client identifier.

    It hears that an administrator did it (0x98; in 3.1.1 the connection ends), and its will is published. It
    may come back at once: to keep it out, change its user in the configuration and reload the gateway. With
    --forget its session ends, too, also that of a client which is away. Run it as the gateway's user or as
    root.

    \b
    Examples:
      hushcast gateway kick dashboard
      hushcast gateway kick old-phone --user alice --forget
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_gateway.operators.questions import KickRequest

    _ask(config, KickRequest(client=client, user=user, forget=forget), lambda line: None)
    told = f"{client} is disconnected" + (", and its session forgotten" if forget else "")
    write(json_line({"client": client, "forgotten": forget}) if choices.json else text_line(told))


@click.group(cls=CommandGroup)
@json_option
def retained() -> None:
    """List what an MQTT gateway retains, and delete it."""


@retained.command("list")
@click.argument("filter_", metavar="[FILTER]", default="#")
@_config_option
@json_option
@pass_choices
def list_retained(choices: Choices, filter_: str, config: Path | None) -> None:
    """List retained messages: topic, size, and who published them.

    Those alone whose topics FILTER matches, if it is given. No payloads. Run it as the gateway's user or as
    root.

    \b
    Examples:
      hushcast gateway retained list
      hushcast gateway retained list 'homeassistant/+/lamp/#' --json
    """
    from hushcast_cli.output import note
    from hushcast_gateway.operators.questions import RetainedQuestion

    if not _ask(config, RetainedQuestion(filter=filter_), _printer(choices, _message)).count:
        note(f"note: nothing is retained that {filter_} matches")


@retained.command()
@click.argument("filter_", metavar="FILTER")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@_config_option
@json_option
@pass_choices
def purge(choices: Choices, filter_: str, yes: bool, config: Path | None) -> None:
    """Delete what is retained or in a history, by topics that FILTER matches.

    Retained messages as their publishers would, by an empty message: who is subscribed hears of it, and what
    was published here and travels is deleted in other houses, too, once the daemon has taken it. What came
    over the network is deleted here alone: the house that published it has it still, and it comes back when
    that house publishes it again. Of histories it deletes what this gateway has, and nobody hears. Asks
    first. Run it as the gateway's user or as root.

    \b
    Examples:
      hushcast gateway retained purge 'homeassistant/sensor/old-plug/#'
      hushcast gateway retained purge 'test/#' --yes
    """
    from hushcast_cli.exits import Failure
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_gateway.operators.questions import PurgeRequest, RetainedQuestion

    if not yes and not _may_purge(_ask(config, RetainedQuestion(filter=filter_), lambda line: None), filter_):
        raise Failure("nothing was deleted")
    done = _ask(config, PurgeRequest(filter=filter_), lambda line: None)
    more = {"travelling": done.travelling, "elsewhere": done.elsewhere, "refused": done.refused}
    if choices.json:
        write(json_line({"deleted": done.count, "histories": done.histories, **more}))
    else:
        write(text_line(f"{_retained_and_kept(done)} deleted"))
    if done.travelling:
        note(f"{done.travelling:,} of them travel: other houses hear once the daemon has taken it")
    if done.elsewhere:
        note(f"{done.elsewhere:,} of them came from other houses, and come back if those publish them again")
    if done.refused:
        raise Failure(
            f"{done.refused:,} more were not deleted, because the daemon has no room, or an alias no "
            "keys for them: look with `hushcast doctor gateway`, and do it again"
        )


@click.command()
@_config_option
@json_option
@pass_choices
def refused(choices: Choices, config: Path | None) -> None:
    """Tell who was refused what in the last ten minutes, and why.

    Subscriptions, clients and messages, the newest first; the filter, topic or name is that of the last time.
    `hushcast doctor gateway` says what to do. The gateway has this in memory alone, for 256 clients and
    causes at most. Run it as the gateway's user or as root.

    \b
    Example:
      hushcast gateway refused
    """
    from hushcast_cli.output import note
    from hushcast_gateway.operators.questions import RefusedQuestion

    if not _ask(config, RefusedQuestion(), _printer(choices, _refusal)).count:
        note("note: nothing was refused in the last ten minutes")


@click.command()
@_config_option
@json_option
@pass_choices
def delayed(choices: Choices, config: Path | None) -> None:
    """List messages that wait to be published.

    What clients published to `$delayed/SECONDS/TOPIC`, the first that is due first. No payloads. Run it as
    the gateway's user or as root.

    \b
    Example:
      hushcast gateway delayed
    """
    from hushcast_cli.output import note
    from hushcast_gateway.operators.questions import DelayedQuestion

    if not _ask(config, DelayedQuestion(), _printer(choices, _waiting)).count:
        note("note: nothing waits to be published")


def _ask(config: Path | None, question: Question, take: Callable[[Line], None]) -> Done:
    """Ask a gateway that runs, give each line of its answer on, and return how it ended.

    Raises `NoDaemon`, or `UsageError` with what the gateway says is wrong.
    """
    import msgspec
    import trio

    from hushcast.errors import NoDaemon
    from hushcast_gateway.operators.questions import Done, Failed, Line
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.processes.questions_socket import NotAnswered, ask_question

    path = load_settings(config_of("gateway", config), GatewaySettings).operators_socket()
    decode, ends = msgspec.json.Decoder(Line).decode, []

    def took(data: bytes) -> bool:
        line = decode(data)
        if isinstance(line, Done | Failed):
            ends.append(line)
        else:
            take(line)
        return bool(ends)

    try:
        trio.run(ask_question, path, msgspec.json.encode(question), took)
    except (NotAnswered, msgspec.MsgspecError) as error:
        why = error if isinstance(error, NotAnswered) else "what it says is of another version"
        raise NoDaemon(
            f"no gateway answers at {path} ({why}): `hushcast doctor gateway` says whether one runs; ask as "
            "its user or as root"
        ) from None
    (end,) = ends
    if isinstance(end, Failed):
        raise UsageError(end.why)
    return end


def _may_purge(found: Done, wanted: str) -> bool:
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.wording import counted

    if not found.count and not found.histories:
        raise UsageError(f"nothing is retained that {wanted} matches: `hushcast gateway retained list`")
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"{counted(found.count + found.histories, 'message')} would be deleted: say --yes, as nobody can "
            "be asked"
        )
    return click.confirm(f"Delete {_retained_and_kept(found)}?", err=True)


def _retained_and_kept(found: Done) -> str:
    from hushcast_runtime.wording import counted

    more = f" and {counted(found.histories, 'message')} of histories" if found.histories else ""
    return counted(found.count, "retained message") + more


def _printer(choices: Choices, as_text: Callable[[Any], str]) -> Callable[[Line], None]:
    """Return what prints a line of an answer, as JSON or text."""
    import msgspec

    from hushcast_cli.output import json_line, text_line, write

    def show(line: Line) -> None:
        write(json_line(msgspec.structs.asdict(line)) if choices.json else text_line(as_text(line)))

    return show


def _client(one: ClientLine) -> str:
    from hushcast_runtime.wording import counted

    told = f"{one.client} ({one.user or 'anybody'}): "
    if one.since is not None:
        told += f"connected since {_time(one.since)}, sent {counted(one.packets_in or 0, 'packet')} "
        told += f"({counted(one.bytes_in or 0, 'byte')}), got {counted(one.packets_out or 0, 'packet')} "
        told += f"({counted(one.bytes_out or 0, 'byte')})"
    else:
        told += "away" + (f", its session ends {_time(one.until)}" if one.until is not None else "")
    waiting = f", {counted(one.queue, 'message')} waiting" if one.queue else ""
    return f"{told}, {counted(one.filters, 'filter')}{waiting}"


def _message(one: RetainedLine) -> str:
    from hushcast_runtime.wording import counted

    whose = "from the network" if one.user is None and one.travels else f"of {one.user or 'anybody'}"
    until = f", until {_time(one.expires)}" if one.expires is not None else ""
    return f"{one.topic}: {counted(one.bytes, 'byte')}, QoS {one.qos}, {whose}{until}"


def _refusal(one: RefusedLine) -> str:
    from hushcast_runtime.wording import counted

    who = f"{one.client or 'somebody'} ({'not known' if one.user is None else one.user or 'anybody'})"
    last = f", the last one {one.subject}" if one.subject else ""
    return f"{_time(one.last)} {who}: {counted(one.count, one.thing)} refused because {one.because}{last}"


def _waiting(one: DelayedLine) -> str:
    from hushcast_runtime.wording import counted

    whose = f"{one.client} ({one.user or 'anybody'})"
    return f"{_time(one.due)} {one.topic}: {counted(one.bytes, 'byte')}, QoS {one.qos}, by {whose}"


def _time(moment: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


COMMANDS: tuple[click.Command, ...] = (clients, kick, retained, delayed, refused)
