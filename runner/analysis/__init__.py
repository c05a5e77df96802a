"""Turns stored runs into tables, comparisons, quality issues, and the decision whether to measure more.

- ``dataset.load_dataset``: a run folder as tables (``model.Dataset``), one row for each sample, round and failure.
- ``compare.compare``, ``compare.summarise``: environments against a base (``model.Comparison``, ``model.Row``).
- ``quality.quality_issues``, ``quality.annotate``: what makes the numbers of a run doubtful.
- ``stopping.StoppingRule``: which cells get another round.

Nothing here writes, starts processes or talks to devices. The modules import pandas, NumPy and, when called, SciPy, so
this package exports nothing itself: import the module that you need.
"""
