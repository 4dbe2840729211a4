"""An oracle of its own: the rules in plain Python on trees of its own, against the figures of the pages."""

from __future__ import annotations

import random
from collections import Counter


def exposed(n: int, depth: int, share: float, trials: int, leak: bool, rng: random.Random) -> float:
    """How often the weakest rule names the root of a tree that fills up from the left."""
    hits = 0.0
    for _ in range(trials):
        order = rng.sample(range(1, n), n - 1)  # 0 is the root
        bad = set(rng.sample(range(1, n), int(share * n)))
        width = next(b for b in range(1, n) if sum(b**i for i in range(1, depth + 1)) >= n - 1)
        parent, top = {}, set(order[:width])
        free = [node for node in [0, *order] for _ in range(width)]
        for child, above in zip(order, free, strict=False):
            parent[child] = above
        inner = set(parent.values())
        votes = Counter(parent[c] for c in bad if c in inner and parent[c] not in bad)
        for node in list(votes):
            if node in parent and parent[node] in bad:
                del votes[node]
        if leak and bad & top:
            hits += 1
        elif votes:
            best = max(votes.values())
            first = [node for node in votes if votes[node] == best]
            hits += (0 in first) / len(first)
        else:
            hits += 1 / (n - len(bad))
    return hits / trials
