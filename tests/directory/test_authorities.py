"""Several directory daemons: a head each epoch, whoever is killed, lies or is away; and one becomes many."""

from __future__ import annotations

from authority_bench import authority_bench


async def test_five_agree_every_epoch() -> None:
    async with authority_bench() as made:
        first = made.epoch + 2
        await made.until(first + 4)
        for epoch in range(first, first + 4):
            assert len(made.heads(epoch)) == 1
        for directory in made.directories:
            assert directory.head is not None
            assert directory.head.count == 3
            assert directory.agreeing.problem is None
            assert directory.agreeing.peers.reached == 4
