"""Why results of a user's network that differ from the base's may both be right."""

NO_STATE = "no state could be loaded ({}), and the results differ: {}"
RANDOM = "results depend on random numbers that the framework draws (dropout, or data that is not drawn from `random`), and "
RANDOM += "differ: {}"
OTHER_START = "{}, which may hold other numbers here, and the results differ: {}"
OTHER_DRAWS = "one key of the framework's generator gives other random bits here than in {}, and the results differ: {}"
OF_ITSELF = "this environment made the reference, and no longer gives the same (the object carries something from call to call "
OF_ITSELF += "that its state does not bring back, or sums are made in another order): {}"


def find(check: "dict", base: "str", program: "object", is_base: "bool", failure: "object") -> "str":
    """Return why results that differ may both be right, with how they differ; empty where one is wrong.

    The shapes of results may depend on random numbers, of which releases draw others from the same seed, or keys give other
    bits; a network whose state cannot be loaded, or not all of it, may have started from another one; and the base, which
    made the reference, is right.

    Args:
        check: the facts of the reference.
        base: the environment that made it.
        program: the one that was loaded.
        is_base: whether this environment made the reference.
        failure: the CellFailure of the comparison.
    """
    if failure.kind != "wrong-result":
        return ""
    if check["random"]:
        return RANDOM.format(failure.reason)
    if check["by"] == "outputs":
        return NO_STATE.format(check["reason"], failure.reason)
    if program.loaded.is_drawn:
        return OTHER_START.format(program.loaded.note(), failure.reason)
    here = program.draws()
    if check["draws"] and here and check["draws"] != here:
        return OTHER_DRAWS.format(base, failure.reason)
    return OF_ITSELF.format(failure.reason) if is_base else ""
