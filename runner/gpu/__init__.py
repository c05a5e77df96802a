"""GPUs through NVML; the only caller of that library."""
