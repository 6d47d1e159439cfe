"""What is known of GPUs: the catalogue, names, targets, hardware sheets, and NVML (only when asked)."""
