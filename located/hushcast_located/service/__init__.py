"""The provider as a service beside a daemon: it takes batches and subscriptions, and publishes answers."""
