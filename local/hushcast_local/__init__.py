"""What applications get of a daemon, whatever carries their messages."""
