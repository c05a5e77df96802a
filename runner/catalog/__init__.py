"""Data with their sources: what is measured, what others have published, and what hardware can do.

- ``cases`` has the workloads with their sizes, and formulas for the cost of a step.
- ``published`` has the figures of papers and repositories.
- ``hardware`` has facts about builds, CUDA, drivers and GPUs.
- ``gpu_errors`` has the well-known error messages of GPUs with their fixes.

Every number names its source. ``plan`` and ``analysis`` base their decisions on these data; nothing here reads the
machine.
"""
