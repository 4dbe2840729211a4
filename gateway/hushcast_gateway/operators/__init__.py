"""What whoever runs a gateway is told, and may do."""
