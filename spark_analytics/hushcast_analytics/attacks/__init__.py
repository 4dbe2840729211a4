"""Attacks: each from an adversary's view to a posterior over candidates, one family a file."""
