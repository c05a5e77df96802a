"""Measuring old things in turns: the release where a change came in, and a stored cell measured again."""
