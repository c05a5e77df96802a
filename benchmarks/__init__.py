"""What this program costs, and whether its figures can be trusted, each beside its peer: ``nox -s bench``."""
