"""The checks of the first day, a module each: ``SUBJECT``, and ``rows(settings)``, which yields what it saw."""
