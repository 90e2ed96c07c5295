"""The simulator: an emulated master with frameworks, workloads and traces."""
