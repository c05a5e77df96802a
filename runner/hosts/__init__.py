"""Measure one matrix on several hosts: a driver hands out blocks, workers measure them and return their records.

A block is all cells of one case; it never crosses a device. ``executors`` reaches the hosts (``dask``, ``slurm``),
``project`` packs the files that a run depends on, ``tasks`` is what travels, ``work`` is what a worker does with it,
``driver`` hands out the blocks, and ``collector`` adds what comes back to the run.

A worker measures a block as a separate run, with the stages of ``runner run``, and returns the folder of that run. The
driver saves the folder, and then adds the whole block at once: whenever a driver dies, the next one continues from what
is on the disk.

A block may be measured twice, but counts once: a worker that is taken for lost may go on while its block is handed out
again (``driver._hand_back``; a job of Slurm: ``executors.slurm._without_reply``), and what comes back is added only for
the lease that is open, each block once (``driver._take``; after the death of a driver ``collector.open_leases``).
"""
