"""The machine itself: ``doctor`` and ``tune`` look at it, ``clocks`` and ``clean`` put it right."""
