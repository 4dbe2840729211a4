"""What an observer outside learns from daemons' lines, who reads nothing."""
