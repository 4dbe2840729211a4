"""Directories that agree, of which some lie, and daemons that publish meanwhile."""
