"""Decide what to measure before anything is built or started: pure functions from values to values.

- ``planner`` gives each selected cell a verdict (``verdicts``): run, or skip with a code and a reason.
- ``estimate`` predicts the seconds and the memory of a cell, and ``limits`` says what that exceeds.
- ``compatibility`` decides which builds run on which GPU and driver.
- ``pairs`` adds the A/A pairs, and ``assignment`` shares the cases between GPUs.
- ``specs`` lists what has to be built, and what that costs.
- ``corpus`` turns a user's text into the words of a language model.
- ``document`` writes a plan as JSON and reads it back; ``machine_file`` reads the description of another machine.

Nothing here starts a process, asks a container engine or opens a driver; import-linter enforces that.
"""
