"""GPUs: what the driver says of them, and their clocks. ``nvml`` alone calls NVIDIA's library."""
