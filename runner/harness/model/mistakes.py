"""What a user's code raises, as the failure class and the sentence of a record."""

import contextlib
import importlib.util
import inspect
import os
import sys
import traceback

from ..errors import CellFailure

PACKAGES = {"PIL": "pillow", "cv2": "opencv-python-headless", "sklearn": "scikit-learn", "yaml": "pyyaml", "skimage": "scikit-image"}
"""Module -> the package that has it, where their names differ."""

NETWORK_ERRORS = ("gaierror", "URLError", "HTTPError", "ConnectionError", "ConnectTimeout", "MaxRetryError", "NewConnectionError")
NETWORK_ERRORS += ("ConnectionRefusedError", "LocalEntryNotFoundError", "OfflineModeIsEnabled")
"""Names of the classes that libraries raise where a host cannot be reached."""

NO_NETWORK = "environments have no network in containers: let FILES name the data, which then travels with the file"


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
        kind, reason = classify(error)
        if isinstance(error, ImportError):
            reason = missing_import(error, environment) or reason
        elif is_about_network(error):
            reason = "{}; {}".format(reason, NO_NETWORK)
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
    package = PACKAGES.get(top, top)
    text = "this environment has no module {!r}: add: [{}] under the environment `{}`"
    return text.format(top, package, environment)


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
