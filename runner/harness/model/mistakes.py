"""What a user's code raises, as the failure class and the sentence of a record."""

import contextlib
import importlib.util
import inspect
import os
import sys
import traceback

from .. import script_stack
from ..errors import CellFailure
from .packages import package_of

NETWORK_ERRORS = ("gaierror", "URLError", "HTTPError", "ConnectionError", "ConnectTimeout", "MaxRetryError", "NewConnectionError")
NETWORK_ERRORS += ("ConnectionRefusedError", "LocalEntryNotFoundError", "OfflineModeIsEnabled")
"""Names of the classes that libraries raise where a host cannot be reached."""

NO_NETWORK = "environments have no network in containers: let FILES name the data, which then travels with the file"

NO_ARGUMENTS = "the file is imported without arguments: write the values out, or parse them below `if __name__ == \"__main__\":` alone"
NO_CUDA = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs are available")
"""Of the exceptions of PyTorch where code asks for a GPU and there is none."""
TAKE_DEVICE = "give the constructor the parameter `device`, which is where this cell is measured, and write .to(device) in place of .cuda()"
TAKE_ALONG = 'the files that FILES names travel with the model file: FILES = ["{}"]'
OF_ELSEWHERE = "files outside of the folder of the model file do not travel: copy it into the folder, and name it in FILES"
OF_A_PACKAGE = (
    "write `{0}-more: {{extends: {0}, add: [{package}]}}` below environments:, or {package} into the add: that {0} has; then "
    "`runner lock {0}-more`, and measure that environment"
)
OF_A_FOLDER = (
    "where it is yours, {0}.py or the folder {0} has to lie beside the model file, imported by an import statement or named, "
    'FILES = ["{0}/*.py"]; where it is of a package, find the name of the package and extend the environment'
)


@contextlib.contextmanager
def explained(folder: "str", environment: "str", classify: "object") -> "object":
    """Raise whatever the block raises as a CellFailure whose reason has the line of the user's code.

    Args:
        folder: of the user's files; None where there are none, and nothing is explained.
        environment: its name in matrix.yaml.
        classify: returns (failure class, reason) of an exception.
    """
    try:
        yield
    except CellFailure:
        raise
    except BaseException as error:  # SystemExit, too: a user's file may call ``sys.exit``
        if folder is None:
            raise
        traceback.print_exc()
        error = script_stack.without_generator(error)
        kind, reason = classify(error)
        if isinstance(error, ImportError):
            reason = missing_import(error, environment) or reason + hidden_import(error)
        elif isinstance(error, SystemExit):
            reason = refused_arguments(error) or reason
        else:
            reason += "".join("; " + hint for hint in [hint_of(error, folder)] if hint)
        raise CellFailure(kind, location_of(error, folder) + reason) from error


@contextlib.contextmanager
def located(function: "object", folder: "str") -> "object":
    """Let what the block raises begin with the line where a function of the user's file is defined.

    The block reads what the function has returned, so that no line of the user's is in the traceback.
    """
    try:
        yield
    except CellFailure as failure:
        raise CellFailure(failure.kind, defined_at(function, folder) + failure.reason, failure.facts) from failure
    except Exception as error:
        error.defined_at = defined_at(function, folder)
        raise


def defined_at(function: "object", folder: "str") -> "str":
    """Return ``file:line: `` of a function of the user's code; empty for any other function."""
    function = getattr(function, "func", function)  # of a partial
    function = inspect.unwrap(getattr(function, "__func__", function))  # without its decorators
    code, prefix = getattr(function, "__code__", None), os.path.join(folder, "")
    if code is None or not folder or not code.co_filename.startswith(prefix):
        return ""
    return "{}:{}: ".format(code.co_filename[len(prefix) :], code.co_firstlineno)


def location_of(error: "BaseException", folder: "str") -> "str":
    """Return ``file:line: `` of the deepest line of the user's code in a traceback; else what ``located`` says, or nothing."""
    prefix, location = os.path.join(folder, ""), getattr(error, "defined_at", "")
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(prefix):
        return "{}:{}: ".format(error.filename[len(prefix) :], error.lineno)
    for frame in traceback.extract_tb(error.__traceback__):
        if frame[0].startswith(prefix):
            location = "{}:{}: ".format(frame[0][len(prefix) :], frame[1])
    return location


def missing_import(error: "ImportError", environment: "str") -> "object":
    """Return the sentence for a module that the environment lacks; None where it is the content of one that is there."""
    name = getattr(error, "name", None)
    if not name or not str(error).startswith("No module named"):
        return None
    top = name.partition(".")[0]
    if top in sys.modules or importlib.util.find_spec(top) is not None:
        return "the {} of this environment has no module {!r}".format(top, name)
    text, package = "this environment has no module {!r}: {}", package_of(top)
    if not package:
        return text.format(top, OF_A_FOLDER.format(top))
    base = environment.partition("@")[0]
    quoted = package if package.replace("-", "").isalnum() else '"{}"'.format(package)
    return text.format(top, OF_A_PACKAGE.format(base, package=quoted))


def hidden_import(error: "ImportError") -> "str":
    """Return what follows the reason where a module of Python has not what a user's file of the same name has."""
    path, name = getattr(error, "path", None), getattr(error, "name", None)
    if not path or not name or os.path.dirname(os.path.realpath(path)) != os.path.dirname(os.path.realpath(os.__file__)):
        return ""
    return "; {0} is a module of Python itself, so that a file {0}.py of yours does not travel: rename it".format(name)


def refused_arguments(error: "SystemExit") -> "str":
    """Return the sentence that ``argparse`` has printed before it ended the program; empty where something else did."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "error" and frame.f_globals.get("__name__") == "argparse":
            return "argparse: {}; {}".format(frame.f_locals.get("message", ""), NO_ARGUMENTS)
    return ""


def hint_of(error: "BaseException", folder: "str") -> "str":
    """Return what to do about an exception of a user's code; empty where that is not known."""
    if any(phrase in str(error) for phrase in NO_CUDA):
        return TAKE_DEVICE
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        name = os.path.relpath(error.filename, folder) if os.path.isabs(error.filename) else os.path.normpath(error.filename)
        return (OF_ELSEWHERE if name.startswith("..") else TAKE_ALONG).format(name)
    return NO_NETWORK if is_about_network(error) else ""


def is_about_network(error: "BaseException") -> "bool":
    """Return whether an exception, or what caused it, says that a host cannot be reached."""
    known = []
    while not any(error is each for each in known):
        known.append(error)
        if any(kind.__name__ in NETWORK_ERRORS for kind in type(error).__mro__):
            return True
        cause = error.__cause__ or error.__context__
        if cause is None:
            break
        error = cause
    return False
