"""The first day with a GPU, in one command: ``nox -s gpu``.

``__main__`` runs the checks of ``checks/``, each in a process with a time limit, and writes one folder:
``first-day.json`` with all rows, ``index.html`` for people, the report of the quick run, and the logs. ``probes/`` are
the programs that run inside the environments, sent there as the harness is. ``predictions`` holds the review's
predictions against the rows.
"""
