"""Authorities that agree while some of them lie: many epochs in one process, from a seed."""
