"""Figures 6 to 9 of Yan and others 2017, measured with this program."""
