"""The history of the stored runs: ``runner history`` and its commands, and what runs and nights add to it.

``entries`` makes an entry of a run folder, ``add`` adds it at the end of a run, ``rebuild`` makes all of them again,
``show`` reads trends, ``prune`` removes old runs, and ``accept`` makes a run the baseline and the anchor of cells.
"""
