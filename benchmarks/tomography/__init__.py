"""What tomography saves, costs and withstands, in a model of brokers in one process."""
