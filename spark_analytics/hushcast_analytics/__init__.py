"""Traces in, anonymity degree out: analysis and generation of traces on Spark."""
