"""Unit tests of ``runner.search.bisect``."""
