"""Unit tests of ``runner.search.reproduce``."""
