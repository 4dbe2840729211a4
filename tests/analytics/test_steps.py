"""Steps: the share done and the time left, by a clock of the test's own."""

from __future__ import annotations

import threading

import pytest

from hushcast_analytics.work_steps import WorkStep, WorkSteps, each_second, go_through, told


@pytest.mark.parametrize(
    ("share", "seconds", "expected"),
    [
        (0.0, None, "reading"),
        (0.25, None, "reading (25 % done)"),
        (0.25, 0.2, "reading (25 % done, about 1 s left)"),
        (0.25, 89.0, "reading (25 % done, about 89 s left)"),
        (0.25, 100.0, "reading (25 % done, about 2 min left)"),
        (0.25, 7300.0, "reading (25 % done, about 2 h left)"),
    ],
)
def test_words(share: float, seconds: float | None, expected: str) -> None:
    assert told("reading", share, seconds) == expected


def test_what_is_left_is_judged_by_what_was() -> None:
    now, heard = 100.0, []
    steps = WorkSteps(heard.append, 10.0, lambda: now)
    steps.begin("a")
    now += 20
    steps.end(2.0)
    steps.begin("b")
    now += 10
    steps.refresh()
    now += 10
    steps.refresh(0.5)
    now += 200
    steps.refresh()
    assert heard == [
        "a",
        "b (20 % done, about 80 s left)",
        "b (20 % done, about 70 s left)",
        "b (50 % done, about 40 s left)",
        "b (50 % done)",  # nobody knows any more
    ]


def test_the_steps_of_a_lane_are_done_in_order_and_told() -> None:
    done: list[str] = []
    heard: list[str] = []
    lanes = [
        [WorkStep(name, 1.0, lambda name=name: done.append(name)) for name in lane] for lane in ("ab", "cd")
    ]
    go_through(lanes, heard.append)
    assert done == ["a", "b", "c", "d"]
    assert [text[0] for text in heard] == done
    assert heard[0] == "a"
    assert heard[2].startswith("c (50 % done")


def test_lanes_go_on_side_by_side() -> None:
    met = threading.Barrier(2)
    lanes = [[WorkStep(name, 1.0, lambda: met.wait(30))] for name in "ab"]
    go_through(lanes, lambda text: None, at_once=2)
    assert met.n_waiting == 0


def test_what_is_last_waits_for_all_lanes() -> None:
    done: list[str] = []
    met = threading.Barrier(2)

    def meet(name: str) -> None:
        met.wait(30)
        done.append(name)

    lanes = [[WorkStep(name, 1.0, lambda name=name: meet(name))] for name in "ab"]
    heard: list[str] = []
    last = [WorkStep(name, 1.0, lambda name=name: done.append(name)) for name in "yz"]
    go_through(lanes, heard.append, last=last, at_once=2)
    assert sorted(done[:2]) == ["a", "b"]
    assert done[2:] == ["y", "z"]
    assert heard[-1].startswith("z (75 % done")


def test_the_first_error_ends_all() -> None:
    done: list[str] = []

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        go_through(
            [[WorkStep("a", 1.0, fail), WorkStep("b", 1.0, lambda: done.append("b"))]], lambda text: None
        )
    assert done == []


def test_an_interrupt_ends_what_is_under_way() -> None:
    over = threading.Event()

    def interrupted() -> None:
        raise KeyboardInterrupt

    lanes = [[WorkStep("a", 1.0, lambda: over.wait(30))], [WorkStep("b", 1.0, interrupted)]]
    with pytest.raises(KeyboardInterrupt):
        go_through(lanes, lambda text: None, at_once=2, interrupt=over.set)
    assert over.is_set()


def test_nothing_ticks_unless_asked() -> None:
    with each_second(None):
        pass
