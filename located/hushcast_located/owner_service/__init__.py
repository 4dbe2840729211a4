"""The owner as a service beside a daemon: it gathers messages, signs batches and publishes them."""
