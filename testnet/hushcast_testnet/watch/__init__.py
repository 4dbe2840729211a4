"""A local page that shows a running testnet: its daemons, a subscription's tree, messages as they move."""
