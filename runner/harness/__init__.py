"""The measuring code that travels into every environment.

It imports nothing of the runner, and runs on Python 3.5 to 3.14 with the standard library, NumPy and the framework. It
reaches an environment as a zip archive on stdin, so it is never part of an image.

``server`` answers requests, ``supervisor`` follows the child that it forks for each of them, ``worker`` is what the child
does, and ``leftovers`` ends the processes and removes the files that it leaves behind. ``cases`` holds the data and weights
of each case, ``verify`` the reference and the tolerances, ``adapters`` one package or module for each framework. ``timing``
decides how long a cell warms up and is measured, and ``script_stack`` makes the calls that it requests.
"""
