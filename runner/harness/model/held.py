"""What a user's object holds: in attributes, lists and dicts, in objects of other classes, and in closures of functions.

Networks are kept in a trainer, in a list of towers, or in the closure of a step. An object of a framework is yielded and
not looked into: the adapter of the framework knows what it holds.
"""

import argparse
import collections
import functools
import os
import sys
import types

FRAMEWORK_MODULES = ("torch", "tensorflow", "keras", "tf_keras", "jax", "jaxlib", "flax", "equinox", "optax", "theano", "lasagne")
FRAMEWORK_MODULES += ("lightning", "pytorch_lightning")
"""Packages whose classes are none of the user's: ``nn.Module.train`` makes no step."""
NOT_LOOKED_INTO = FRAMEWORK_MODULES + ("numpy", "pandas", "numba", "llvmlite")
"""Likewise packages whose objects hold their own state, such as what numba has compiled."""
NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
"""Classes of the standard library whose attributes are the user's."""
DEPTH = 6
"""Steps from the user's object to a value: attributes, entries and variables of closures."""
LIMIT = 20000
"""Values that are looked at: a data set in a list has many."""
STANDARD = os.path.dirname(os.__file__)


def never(value: "object") -> "bool":
    """Return False."""
    return False


def walk(root: "object", is_whole: "object" = never) -> "object":
    """Yield (name, value) of everything that an object holds, the object first, with an empty name.

    A list, a dict or an object that is reached twice is looked into once, so cycles end. Names are sorted, so releases
    name the same things alike.

    Args:
        root: the user's object.
        is_whole: returns whether an object of the user's own classes is yielded and not looked into, as those of a
            framework are; is not asked about lists, dicts and functions.
    """
    seen = set()
    waiting = collections.deque([("", root, DEPTH)])  # what has a short path is met by it, and not cut off
    for _ in range(LIMIT):
        if not waiting:
            return
        name, value, depth = waiting.popleft()
        yield name, value
        if depth and id(value) not in seen:
            inside = entries(value, is_whole)
            if inside:
                seen.add(id(value))
            waiting += [("{}.{}".format(name, key).strip("."), entry, depth - 1) for key, entry in inside]


def entries(value: "object", is_whole: "object" = never) -> "list":
    """Return [(name, value)] of what a value holds; nothing for one that is not looked into."""
    if isinstance(value, (dict, list, tuple)) and len(value) > LIMIT:
        return []
    if isinstance(value, dict):
        return [(str(key), value[key]) for key in sorted(value, key=str)]
    if isinstance(value, (list, tuple)):
        return [(str(index), entry) for index, entry in enumerate(value)]
    function = function_of(value)
    if function is not None:
        return in_function(function)
    return attributes(value) if is_users(value) and not is_whole(value) else []


def function_of(value: "object") -> "object":
    """Return the user's function in a function, a method, a partial, or what a framework has compiled from one; or None."""
    for name in ("__wrapped__", "python_function"):  # of jax.jit and of tf.function
        if callable(value) and top_module(type(value)) in FRAMEWORK_MODULES:
            value = getattr(value, name, value)
    if isinstance(value, functools.partial):
        return value
    is_function = isinstance(value, (types.FunctionType, types.MethodType))
    return value if is_function and not is_library(value.__module__ or "") else None


def in_function(function: "object") -> "list":
    """Return [(name, value)] of the variables in the closure of a function, and of the object that a method is bound to."""
    if isinstance(function, functools.partial):
        held = [("func", function.func)] + list(enumerate(function.args)) + sorted((function.keywords or {}).items())
        return [(str(name), value) for name, value in held]
    bound = [("self", function.__self__)] if isinstance(function, types.MethodType) else []
    function = getattr(function, "__func__", function)
    closed = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            closed.append((name, cell.cell_contents))
        except ValueError:  # not set yet
            continue
    return bound + closed


def attributes(value: "object") -> "list":
    """Return [(name, value)] of the attributes of an object, by name; nothing that a class computes is computed."""
    values = dict(dictionary(value))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if isinstance(kind.__dict__.get(name), types.MemberDescriptorType):
                try:
                    values[name] = kind.__dict__[name].__get__(value)
                except AttributeError:  # not set
                    continue
    return sorted((name, values[name]) for name in values if isinstance(name, str)) if values else []


def dictionary(value: "object") -> "dict":
    """Return the dict with the attributes of an object; an empty one if it has none, or if its class computes one."""
    return object.__getattribute__(value, "__dict__") if has_dict(type(value)) else {}


def has_dict(kind: "type") -> "bool":
    """Return whether objects of a class keep their attributes in a dict, which no class of theirs computes."""
    defined = [each.__dict__["__dict__"] for each in kind.__mro__ if "__dict__" in each.__dict__]
    return bool(defined) and isinstance(defined[0], (types.GetSetDescriptorType, types.MemberDescriptorType))


def reader(value: "object") -> "object":
    """Return a function that returns the values of ``attributes``, in any order; a quick one where a dict holds all."""
    kind = type(value)
    if has_dict(kind) and not any(each.__dict__.get("__slots__") for each in kind.__mro__):
        return lambda: value.__dict__.values()
    return lambda: [each for _, each in attributes(value)]


def is_users(value: "object") -> "bool":
    """Return whether a value is an object of a class that is neither Python's or NumPy's, nor derived from a framework's."""
    kind = type(value)
    if isinstance(value, NAMESPACES):
        return True
    if isinstance(value, (type, types.ModuleType)) or is_library(module_of(kind)):
        return False
    return not any(top_module(base) in NOT_LOOKED_INTO for base in kind.__mro__)


def top_module(kind: "type") -> "str":
    """Return the package that has a class."""
    return module_of(kind).partition(".")[0]


def module_of(kind: "type") -> "str":
    """Return the module of a class; that of a base where its instances have a slot or a property of that name."""
    names = (getattr(base, "__module__", "") for base in kind.__mro__)
    return next(name for name in names if isinstance(name, str))


@functools.lru_cache(maxsize=None)
def is_library(module: "str") -> "bool":
    """Return whether a module is of a framework, of NumPy or of the standard library."""
    top = module.partition(".")[0]
    if top in NOT_LOOKED_INTO:
        return True
    names = getattr(sys, "stdlib_module_names", None)  # Python 3.10
    if names is not None:
        return top in names
    if top in sys.builtin_module_names:
        return True
    path = getattr(sys.modules.get(top), "__file__", None) or ""
    return path.startswith(os.path.join(STANDARD, "")) and "-packages" not in path
