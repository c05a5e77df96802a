"""NVIDIA GPUs: find them, hold their clocks, read them while they compute, and repeat what ran throttled.

- ``detect`` lists the GPUs that this process may use; ``selection`` picks those of ``--device``.
- ``device.DeviceSession`` is one GPU during a run, ``device.DeviceGroup`` several that compute a case together.
- ``clocks`` holds the clocks and restores them (see there); ``telemetry`` reads clocks, power, energy and heat.
- ``cooling.ThermalGuard`` waits until a GPU is cool, and repeats measurements that ran throttled.
- ``processes`` describes who computes on a GPU, and ``locality`` says which CPUs are near one.
- ``nvml`` has the driver and its GPUs, and ``binding`` the calls, under older names if the driver is old; ``types`` has
  its answers as values, and its errors as sentences.

This package exports nothing: ``runner plan`` imports ``selection`` without the driver's library.
"""
