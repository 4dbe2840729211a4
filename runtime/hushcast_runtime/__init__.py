"""What both daemons stand on: transports, links over streams, storage, configuration, logs, counters."""
