"""Statistics in pure NumPy: intervals, paired tests, stopping rules, change points; nothing of cells, runs or files."""
