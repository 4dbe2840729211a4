"""What brokers that route by content decide: filters, which covers which, and who hides behind them."""
