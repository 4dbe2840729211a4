"""A message is one, whatever it is called: what each client gets, over drawn lists, maps and reservations."""

from __future__ import annotations

import pytest
from naming import judged

pytestmark = pytest.mark.slow


def test_what_clients_get_is_what_plain_sets_over_all_names_say() -> None:
    wrong, compared, came = judged(150, 1)
    assert not wrong
    assert compared > 4_000
    assert came > 1_000
