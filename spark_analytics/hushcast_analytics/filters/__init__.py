"""Filters of brokers: how many subscribers each hides among, at scale."""
