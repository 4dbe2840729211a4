"""The privacy model `full` in daemons: brokers route by words under the keys of several of them."""
