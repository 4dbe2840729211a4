"""What colluders learn in a network of brokers, under each privacy model."""
