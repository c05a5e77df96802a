"""Unit tests of ``runner.workflows.bisect``."""
