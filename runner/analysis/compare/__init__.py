"""Comparisons of environments: which is faster, cell by cell, and how certain the stored rounds are.

``compare`` compares environments with a base, in the newest run that has both; ``summarise`` makes the comparisons that
one run is about. The steps, one module each: ``pairing`` (which cells belong together), ``verdicts`` (are they
comparable, and what do their rounds show), ``noise_floor`` (differences that an A/A pair has as well),
``withheld`` (verdicts that plain processes do not show, or that depend on the state of a process),
``geometric_mean`` (one number for each environment), ``differences`` (what else differs), ``published`` (figures from
papers as a side).
"""

from runner.analysis.compare.comparison import compare, summarise

__all__ = ["compare", "summarise"]
