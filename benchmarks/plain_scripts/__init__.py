"""What the runner measures against plain scripts: ten kinds of calls, in any environments of a matrix."""
