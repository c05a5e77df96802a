"""Refuse files that do not belong in a repository because of their size."""

import sys
from pathlib import Path

LIMIT = 1 << 20


def main(paths: list[str]) -> int:
    """Print the files above LIMIT bytes; return 1 if there are any."""
    large = [path for path in paths if Path(path).stat().st_size > LIMIT]
    sys.stdout.write("".join(f"{path} is larger than {LIMIT} bytes\n" for path in large))
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
