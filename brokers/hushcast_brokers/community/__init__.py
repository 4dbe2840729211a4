"""Networks of communities: what their brokers and daemons do otherwise than under `clear`."""
