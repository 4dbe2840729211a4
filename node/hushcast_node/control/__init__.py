"""The control socket: how local applications and the command line speak to their daemon."""
