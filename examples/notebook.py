"""A notebook: collects messages of a topic into a small table. Open it in an editor that knows `# %%` cells.

    python examples/notebook.py --topic weather --count 10

Nothing is acknowledged, so each run of the cells begins with the same messages. They count as shown: a plain
`hushcast subscribe` goes on behind them, and `--since 0` brings them all.
"""

# %% What to look at
import argparse
from collections import Counter
from datetime import datetime

import hushcast

parser = argparse.ArgumentParser(description="Show messages of a topic as a table.")
parser.add_argument("--topic", default="weather")
parser.add_argument("--count", type=int, default=10, help="messages at most")
parser.add_argument("--seconds", type=float, default=5, help="how long to wait for one more")
parser.add_argument("--socket", help="the daemon's; else HUSHCAST_SOCKET, or the usual places")
options, _ = parser.parse_known_args()  # a notebook's kernel has arguments of its own

# %% Collect: what the daemon keeps comes first, then what arrives
collected: list[hushcast.Message] = []
with (
    hushcast.connect_sync(options.socket) as daemon,
    daemon.subscribe(options.topic, acknowledge="never", since=0) as messages,
):
    while len(collected) < options.count:
        try:
            event = messages.next_event(options.seconds)
        except hushcast.TimedOut:
            break
        if isinstance(event, hushcast.Message):
            collected.append(event)

# %% The table
print(f"{'cursor':>6}  {'received':<19}  {'bytes':>6}  text")
for message in collected:
    received = datetime.fromtimestamp(message.received_at)
    size, text = len(message.payload), message.text[:40]
    print(f"{message.cursor:>6}  {received:%Y-%m-%d %H:%M:%S}  {size:>6}  {text!r}")

# %% And in short
authors = Counter(message.author or "nobody" for message in collected)
print(f"{len(collected)} messages, signed by {', '.join(f'{name} ({n})' for name, n in authors.items())}")
