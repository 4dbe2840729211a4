"""The simulation: real daemons of a whole network in one process, under a mock clock."""
