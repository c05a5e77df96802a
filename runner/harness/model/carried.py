"""What a user's object keeps from call to call beside its state: hidden states, counters, caches."""

import hashlib

PLAIN = (bool, int, float, str, bytes)
NAMED = 3
"""Names in a sentence; of further ones it says how many there are."""


def snapshot(program: "object") -> "dict":
    """Return attribute -> digest of what it holds, of a user's object; entries that nothing can be said of are left out."""
    digests = {}
    for name, entry in program.attributes():
        attribute = name.partition(".")[0]
        content = content_of(program, entry) if name else None
        if content is not None:
            digest = digests.setdefault(attribute, hashlib.sha256())
            digest.update(name.encode("utf-8", "replace") + b"\0" + content + b"\0")
    return {name: digests[name].digest() for name in digests}


def content_of(program, entry):
    """Return the bytes of a number, a text, an array or a tensor; None of anything else."""
    if isinstance(entry, PLAIN):
        return repr(entry).encode("utf-8", "replace")
    try:
        array = program.as_array(entry)
        if array is None and hasattr(entry, "dtype") and hasattr(entry, "tobytes"):
            array = entry
        return None if array is None else array.tobytes()
    except Exception:  # whatever a framework raises of a tensor that cannot be read here
        return None


def changed(before: "dict", after: "dict") -> "str":
    """Return the attributes that differ between two snapshots, for a sentence.

    >>> changed({"a": b"1", "b": b"1"}, {"a": b"2", "b": b"1", "c": b"1"})
    '`a` and `c`'
    >>> changed({}, {})
    'something that the object keeps'
    """
    names = sorted(name for name in set(before) | set(after) if before.get(name) != after.get(name))
    return listed(["`{}`".format(name) for name in names]) if names else "something that the object keeps"


def listed(names: "list") -> "str":
    """Return names as a list in a sentence, the first NAMED of them.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d", "e"])
    ('a', 'a, b and c', 'a, b, c and 2 more')
    """
    if len(names) > NAMED:
        names = names[:NAMED] + ["{} more".format(len(names) - NAMED)]
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + names[-1:])
