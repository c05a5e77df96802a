"""The measuring code that travels into every environment.

It imports nothing of the runner, and runs on Python 3.5 to 3.14 with the standard library and NumPy beside the
framework. It reaches an environment as a zip archive on stdin (``bootstrap``), so it is never part of an image.
"""
