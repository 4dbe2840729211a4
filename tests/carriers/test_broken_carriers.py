"""The suite finds what it is for: each way of breaking a promise fails the test of that promise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import test_conformance as suite
import trio
from fake_carrier import NODES, FakeCarrier, FakeNetwork, FakeRoute, Kept
from readers import Reader
from worlds import World, fake, keeping_fake

from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import Tokens

OF_THE_PAST = (
    suite.test_who_was_away_for_days_hears_what_it_missed,
    suite.test_the_past_comes_to_who_wants_it,
    suite.test_what_was_lost_where_it_waited_comes_all_the_same,
)
Break = Callable[[pytest.MonkeyPatch], None]


def loses_every_message(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kept, "put", lambda kept, message: None)


def forgets_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    async def hand_in(route: FakeRoute) -> None:
        kept = route._kept
        while True:
            await kept.arrival.park()
            batch = list(kept.waiting.values())
            kept.waiting.clear()
            try:
                await route._wanted.take(batch)
            except Exception:
                await trio.lowlevel.checkpoint()

    patch.setattr(FakeRoute, "_hand_in", hand_in)


def does_not_end_routes(patch: pytest.MonkeyPatch) -> None:
    async def end(route: FakeRoute) -> None:
        route.ready.set()

    patch.setattr(FakeRoute, "end", end)


def resumes_only_in_name(patch: pytest.MonkeyPatch) -> None:
    async def run(route: FakeRoute) -> None:
        route.ready.set()

    resume = FakeCarrier.resume

    async def broken(carrier: FakeCarrier, wanted: list) -> dict[bytes, FakeRoute]:
        patch.setattr(FakeRoute, "run", run if wanted else FakeRoute.run)
        return await resume(carrier, wanted)

    patch.setattr(FakeCarrier, "resume", broken)


def keeps_what_nobody_wants(patch: pytest.MonkeyPatch) -> None:
    async def resume(carrier: FakeCarrier, wanted: list) -> dict[bytes, FakeRoute]:
        return {one.name: carrier._begun(one) for one in wanted}

    patch.setattr(FakeCarrier, "resume", resume)


def never_forgets_a_message(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FakeNetwork, "_is_over", lambda network, day: False)


def keeps_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FakeNetwork, "kept", lambda network, first: [])


def keeps_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FakeNetwork, "kept", lambda network, first: list(network.messages.values()))


def brings_all_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reader, "knows", lambda reader, message_id: False)


def knows_the_first_day_only(patch: pytest.MonkeyPatch) -> None:
    wants = Kept.wants

    def on_first_day(kept: Kept, message: Message) -> bool:
        return message.day == min(kept.tokens, default=None) and wants(kept, message)

    patch.setattr(Kept, "wants", on_first_day)
    patch.setattr(FakeNetwork, "_is_over", lambda network, day: False)


def mixes_topics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kept, "wants", lambda kept, message: True)


def mixes_conditions_up(patch: pytest.MonkeyPatch) -> None:
    def wants(kept: Kept, message: Message) -> bool:
        tokens = kept.tokens.get(message.day, Tokens(b"", ()))
        return tokens.entries == (tokens.trunk,) == message.tokens[:1]

    patch.setattr(Kept, "wants", wants)


def refuses_without_a_word(patch: pytest.MonkeyPatch) -> None:
    refuse = FakeCarrier.check_open

    def check_open(carrier: FakeCarrier) -> None:
        carrier._network.closed = "" if carrier._network.closed is not None else None
        refuse(carrier)

    patch.setattr(FakeCarrier, "check_open", check_open)


def takes_where_it_is_closed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FakeCarrier, "check_open", lambda carrier: None)


def takes_any_day(patch: pytest.MonkeyPatch) -> None:
    def take(network: FakeNetwork, message: Message) -> None:
        network.messages[message.id] = message

    patch.setattr(FakeNetwork, "take", take)


def describes_itself_in_objects(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FakeRoute, "describe", lambda route: {"nodes": NODES, "names": {b"relay"}})


def probes_nobody(patch: pytest.MonkeyPatch) -> None:
    async def probe(route: FakeRoute, message: Message) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    patch.setattr(FakeRoute, "probe", probe)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (loses_every_message, suite.test_routes_outlast_their_days),
        (forgets_before_it_is_durable, suite.test_what_a_disk_did_not_take_is_handed_in_again),
        (forgets_before_it_is_durable, suite.test_what_a_crash_kept_from_the_disk_is_handed_in_again),
        (does_not_end_routes, suite.test_an_ended_route_is_silent_and_forgotten),
        (does_not_end_routes, suite.test_a_route_may_end_before_it_is_ready),
        (does_not_end_routes, suite.test_routes_that_come_and_go_leave_nothing),
        (resumes_only_in_name, suite.test_what_comes_while_a_subscriber_is_away_arrives_after),
        (keeps_what_nobody_wants, suite.test_a_restart_keeps_what_is_wanted_and_ends_the_rest),
        (never_forgets_a_message, suite.test_what_waits_for_whoever_stays_away_goes_with_its_day),
        (keeps_nothing, suite.test_who_was_away_for_days_hears_what_it_missed),
        (keeps_nothing, suite.test_the_past_comes_to_who_wants_it),
        (keeps_nothing, suite.test_what_was_lost_where_it_waited_comes_all_the_same),
        (keeps_for_ever, suite.test_the_past_comes_to_who_wants_it),
        (brings_all_again, suite.test_who_was_away_for_days_hears_what_it_missed),
        (knows_the_first_day_only, suite.test_routes_outlast_their_days),
        (mixes_topics, suite.test_topics_and_conditions_are_kept_apart),
        (mixes_conditions_up, suite.test_topics_and_conditions_are_kept_apart),
        (refuses_without_a_word, suite.test_whom_nobody_answers_is_told_why),
        (takes_where_it_is_closed, suite.test_whom_nobody_answers_is_told_why),
        (takes_any_day, suite.test_a_message_of_a_day_gone_by_gets_no_receipt),
        (describes_itself_in_objects, suite.test_a_route_describes_itself_as_plain_data),
        (probes_nobody, suite.test_a_probe_goes_the_way_of_publications),
        (probes_nobody, suite.test_a_probe_that_nobody_takes_says_so),
    ],
)
async def test_a_broken_promise_is_found(
    monkeypatch: pytest.MonkeyPatch, broken: Break, promise: Callable[[World], Awaitable[None]]
) -> None:
    broken(monkeypatch)
    async with (keeping_fake if promise in OF_THE_PAST else fake)() as world:
        # What `json` cannot write is a TypeError.
        with pytest.raises((AssertionError, TypeError, pytest.fail.Exception)):
            await promise(world)
