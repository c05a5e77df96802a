"""Decide what is measured before anything is touched: pure functions from values to values.

``planner.plan`` gives each selected cell a verdict, run or skip with a code and a reason. ``estimate`` says how long a
cell takes and how much memory it holds, ``compatibility`` which builds run on which GPU and driver. ``controls`` adds
the A/A pairs, ``devices`` shares the cases between GPUs, ``environments`` lists what has to be built, ``corpus`` reads
a user's text. ``document`` writes a plan as JSON and reads it back, ``machine_file`` reads the description of another
machine.

Nothing here starts a process, asks an engine or opens a driver; import-linter holds that.
"""
