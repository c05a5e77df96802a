"""Which environments are alive at the same time: as many as memory holds."""

from collections.abc import Mapping, Sequence


def admit(environments: Sequence[str], sizes: Mapping[str, int], memory: int) -> tuple[tuple[str, ...], ...]:
    """Return groups of environments whose sizes add up to at most ``memory`` bytes, each with the first environment.

    An environment of unknown size counts as 0. A pair that is too large together is a group all the same, as the kernel
    may still let it run.

    >>> admit(["a", "b", "c", "d"], {"a": 2, "b": 2, "c": 2, "d": 1}, 5)
    (('a', 'b', 'd'), ('a', 'c'))
    """
    base, others = environments[0], environments[1:]
    groups: list[list[str]] = []
    free: list[int] = []
    for name in others:
        size = sizes.get(name, 0)
        index = next((k for k, free_bytes in enumerate(free) if size <= free_bytes), None)
        if index is None:
            groups.append([base])
            free.append(memory - sizes.get(base, 0))
            index = len(groups) - 1
        groups[index].append(name)
        free[index] -= size
    return tuple(tuple(group) for group in groups) or ((base,),)
