"""Releases that an index offers: lock files, their check, pinned images, and environments for further releases."""
