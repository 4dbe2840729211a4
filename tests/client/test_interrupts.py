"""Ctrl-C comes in whichever task runs: programs catch it as what it is."""

import pytest

from hushcast.blocks import interrupt_alone


def test_ctrl_c_in_a_task_is_no_group() -> None:
    wrapped = BaseExceptionGroup("tasks", [BaseExceptionGroup("more", [KeyboardInterrupt()])])
    with pytest.raises(KeyboardInterrupt), interrupt_alone():
        raise wrapped


def test_what_else_went_wrong_is_not_hidden_by_it() -> None:
    wrapped = BaseExceptionGroup("tasks", [KeyboardInterrupt(), ValueError()])
    with pytest.raises(BaseExceptionGroup) as caught, interrupt_alone():
        raise wrapped
    assert caught.value is wrapped
