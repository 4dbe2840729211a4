"""Traces of networks that never ran: any number of relays, on Spark, in the same tables as real ones."""
