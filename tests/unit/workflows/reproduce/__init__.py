"""Unit tests of ``runner.workflows.reproduce``."""
