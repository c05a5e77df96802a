"""Data with sources, and no decisions: what is measured, what others measured, and what hardware can do.

``cases`` has the workloads with their sizes, ``published`` the figures of papers and repositories, ``hardware`` the
facts about builds, CUDA, drivers and GPUs, and ``gpu_errors`` the well-known failures of GPUs with their fixes.

Every number names its source. ``plan`` and ``analysis`` decide by these data; nothing here reads the machine.
"""
