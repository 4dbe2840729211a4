"""Commands of applications: publish, subscribe, and what the daemon keeps of both."""
