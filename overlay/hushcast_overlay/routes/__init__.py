"""What a daemon that subscribes and publishes runs: routes, their mailboxes and trees, drops and probes."""
