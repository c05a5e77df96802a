"""Programs that run inside the environments, with what they have installed: sent there as the harness is."""
