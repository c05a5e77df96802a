"""One module for each change of the tables, each of which names the one before it."""
