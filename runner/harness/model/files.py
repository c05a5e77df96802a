"""The files of a user's network: kept by the server, unpacked and imported in its children alone."""

import base64
import importlib.util
import os
import shutil
import sys
import types

from .. import variables


class ModelFiles(object):
    """The files of a network.

    Attributes:
        digest: of all files.
        entry: the name of the file with the classes.
        folder: where a child unpacks them.
    """

    def __init__(self, message: "dict", parent: "str") -> "None":
        """Take a request of the runner, and the folder of the server.

        Raises:
            ValueError: a name leads out of the folder.
        """
        self.digest, self.entry = message["digest"], message["entry"]
        self.files = {name: base64.b64decode(data) for name, data in message["files"].items()}
        for name in self.files:
            if os.path.isabs(name) or ".." in name.split("/"):
                raise ValueError("the name of a file leads out of the folder: {!r}".format(name))
        self.folder = os.path.join(parent, "model-" + self.digest.rpartition(":")[2][:16])

    def unpack(self) -> "None":
        """Write all files anew, so that nothing that an earlier child has changed is there."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in sorted(self.files):
            path = os.path.join(self.folder, *name.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(self.files[name])

    def load(self) -> "object":
        """Unpack the files and return the module of the entry."""
        self.unpack()
        return module(self.folder, self.entry)

    def load_anew(self) -> "object":
        """Return what ``load`` does, with new modules of all files: whatever these hold is as in a new process."""
        for name, each in list(sys.modules.items()):
            if any(path.startswith(os.path.join(self.folder, "")) for path in paths(each)):
                del sys.modules[name]
        return self.load()


def paths(imported: "object") -> "list":
    """Return where a module is from: its file, and the folders of a package; empty of objects that stand for modules."""
    names = vars(imported) if type(imported) is types.ModuleType else {}
    return [path for path in [names.get("__file__"), *(names.get("__path__") or ())] if isinstance(path, str)]


def module(folder: "str", entry: "str") -> "object":
    """Return the module of a file; its folder is the first that imports look into, and where relative paths start."""
    sys.path.insert(0, folder)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    stem = os.path.splitext(os.path.basename(entry))[0]
    name = "user_" + stem if stem in sys.modules else stem
    specification = importlib.util.spec_from_file_location(name, os.path.join(folder, entry))
    made = importlib.util.module_from_spec(specification)
    sys.modules[name] = made
    with variables.watched():
        specification.loader.exec_module(made)
    return made
