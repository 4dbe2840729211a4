"""The tomography service as a daemon, the brokers that state to it, and whoever asks it."""
