"""Analysis of traces (anonymity, network figures) and generation of synthetic ones, on Spark."""
