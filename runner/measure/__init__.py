"""Measure a plan: which cell is measured when, and how a harness server is asked to measure it.

``rounds.measure`` is the entry point: it yields an outcome for each cell and round, and the events between them.
``round_plan`` decides the order, which is the same for the same seed, and ``turns`` which cells take turns within a
round. ``server_pool`` starts, replaces and ends the servers, as many as memory holds; ``session`` talks to one of them.
``precompile`` lets slow compilers work in parallel before anything is timed. ``references`` computes the float64
results that servers check theirs against. ``canary`` times a fixed product to see the machine drift, and ``record``
turns a server's reply into the record of a cell.
"""
