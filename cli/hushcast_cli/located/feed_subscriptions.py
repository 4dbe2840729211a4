"""`hushcast located subscribe`, `subscriptions` and `unsubscribe`: feeds whose answers are checked here."""

from __future__ import annotations

from typing import Any

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import daemon_options, json_option, number_option, timeout_option
from hushcast_protocol.spatial.answer_problems import AnswerProblem

_ANY = "any"


class PlaceParameter(click.ParamType[tuple[float, float]]):
    """A latitude and a longitude, in degrees."""

    name = "place"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[float, float]:
        """Return the place; that it is on the earth is checked where all places are."""
        if isinstance(value, tuple):
            return value
        try:
            latitude, longitude = map(float, str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is no place: latitude and longitude, as 60.17,24.94", parameter, context)
        return latitude, longitude


@click.command()
@click.option("--provider", metavar="OFFER", help="The provider's offer, or a file that holds it.")
@click.option("--at", type=PlaceParameter(), metavar="LAT,LON", help="Where, in degrees.")
@click.option("--keywords", metavar="WORDS", help="What about: `shoe,discount`.")
@click.option("--alpha", type=float, metavar="A", help="How much words count beside the place. Default: 0.5.")
@click.option("--threshold", type=float, metavar="T", help="How near is near enough. Default: 0.7.")
@click.option("--blur", type=float, metavar="KM", help="Tell the provider a cell of KM kilometres alone.")
@number_option("--blur-keywords", 1, help="Tell it N of the keywords alone.")
@click.option("--owner", metavar="PUBLIC", help="The owner's public key: refuse offers for other feeds.")
@click.option("--name", metavar="NAME", help="What to keep it as; alone, go on with what is kept.")
@number_option("--count", 1, help="End when N messages have come.")
@click.option(
    "--stop-on-problem",
    "stops",
    multiple=True,
    type=click.Choice([_ANY, *map(str, AnswerProblem)]),
    help="End with exit code 4 at such a problem; may be given several times.",
)
@timeout_option
@daemon_options
@pass_choices
def subscribe(
    choices: Choices,
    /,
    name: str | None,
    count: int | None,
    stops: tuple[str, ...],
    timeout: float | None,
    **given: Any,
) -> None:
    """Subscribe to messages near a place and about some words, and print those that hold.

    The provider matches and sends what it found with a proof; messages are printed once the proof was checked
    by the owner's key in the offer. What does not hold, or is missing, is told by name. The subscription
    stays when this command ends, and what comes meanwhile is printed first by the next one that is given its
    --name: `hushcast located unsubscribe` ends it. With --at or --keywords beside its --name it is moved.

    With --blur and --blur-keywords the provider is told less; what it answers is checked as to that, and
    narrowed down here. The first request is sent at some moment of the next ten minutes then.

    \b
    Examples:
      hushcast located subscribe --provider shops.offer --at 60.17,24.94 --keywords shoe,discount
      hushcast located subscribe --name feed-1 --json --stop-on-problem any
      hushcast located subscribe --name feed-1 --at 61.5,23.8
      hushcast located subscribe --provider shops.offer --at 60.17,24.94 --keywords shoe --blur 20
    """
    from hushcast_cli.daemon_calls import daemon, run
    from hushcast_cli.located.feed_listener import follow, open_one, printer_for
    from hushcast_protocol.base.errors import UsageError

    if given["provider"] is None:
        moves = ("at", "keywords") if name is not None else ()
        if unused := [key for key, value in given.items() if value is not None and key not in moves]:
            option = "--" + unused[0].replace("_", "-")
            raise UsageError(f"{option} goes with --provider: a subscription that is kept stays as it is")
        if name is None:
            raise UsageError("give --provider OFFER, or the --name of a subscription to go on with")
    printer = printer_for(choices.json)

    async def work() -> None:
        # Values are checked before a daemon is looked for.
        opening = open_one(name, given)
        async with daemon(choices, waits=True) as one:
            await follow(opening(one), count, set(AnswerProblem) if _ANY in stops else set(stops), printer)

    run(work, timeout)


@click.command()
@json_option
@pass_choices
def subscriptions(choices: Choices) -> None:
    """List the subscriptions to located feeds that are kept.

    \b
    Example:
      hushcast located subscriptions --json
    """
    from hushcast_cli.located.feed_listener import listed
    from hushcast_cli.output import json_line, text_line, write

    for told, line in listed():
        write(json_line(told) if choices.json else text_line(line))


@click.command()
@click.argument("name", metavar="NAME")
@timeout_option
@daemon_options
@pass_choices
def unsubscribe(choices: Choices, name: str, timeout: float | None) -> None:
    """End a subscription to a located feed: at its provider, in the daemon, and here.

    \b
    Example:
      hushcast located unsubscribe feed-1
    """
    from hushcast_cli.daemon_calls import converse
    from hushcast_cli.output import json_line, note, write
    from hushcast_located.subscriber.feed_subscription import check_known
    from hushcast_located.subscriber.feed_subscription import unsubscribe as end

    check_known(name)
    converse(choices, lambda daemon: end(daemon, name), timeout)
    if choices.json:
        write(json_line({"event": "unsubscribed", "name": name}))
    else:
        note(f"{name} has ended")
