"""Communities: groups of brokers and daemons that trust each other with filters, and nobody else."""
