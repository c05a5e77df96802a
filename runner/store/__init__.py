"""Stores runs as folders of JSON files, and reads them back.

- ``run.Run``: one run folder; ``run.runs``: all of a reports folder, newest first.
- ``journal.Journal``: the events of a run; a record counts once the journal names it.
- ``records``, ``documents``: the file formats, with versions and upgrades.
- ``shapes``, ``checksums``, ``damage``: what is read back is checked; what is damaged is left out, with a sentence.
- ``samples``: samples as Parquet and CSV (imports pandas, so it is not exported here).
"""
