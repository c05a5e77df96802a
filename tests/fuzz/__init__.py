"""Fuzzing: inputs that are almost right, and what may come of them: a result or an error for people.

- ``draws``, ``values``, ``edits``: random choices, hostile values, and changes to JSON documents and bytes.
- ``strategies``: the generator of each target's inputs, for hypothesis, for atheris and for random numbers.
- ``targets``: what each target does with an input.
- ``limits``: the errors, seconds and bytes that an input may cost.
- ``engine``, ``__main__``: long runs, ``python -m tests.fuzz TARGET``; ``test_fuzz``: the short run of CI.
- ``corpora/TARGET/``: inputs that once broke something, named by what they broke.
"""
