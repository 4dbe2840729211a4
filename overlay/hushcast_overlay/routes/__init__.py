"""What a daemon that subscribes and publishes runs: routes, their boxes and trees, drops and probes."""
