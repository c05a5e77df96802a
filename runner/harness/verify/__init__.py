"""Verifies that an implementation computes the case before and after its time counts.

``reference`` computes losses, gradients and outputs in float64, from ``layers`` and ``losses``. ``tolerance`` compares an
implementation with them, and ``trial`` decides when. ``python -m runner.harness.verify CASE`` prints the reference of a
case, given as JSON.
"""
