"""Ways to reach the devices of other hosts, one protocol: Dask and Slurm.

An executor knows devices by a key, gives a device one task at a time, and returns bytes. It never retries: the driver
decides what happens to the block of a worker that is lost.
"""
