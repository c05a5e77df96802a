"""What a server keeps of users' networks: their files, and the reference of a case."""

import base64
import hashlib
import os
import tempfile

from .files import ModelFiles


class ModelStore(object):
    """The files by digest, and the newest reference, whose arrays are in a file below the server's folder."""

    def __init__(self) -> "None":
        """Keep nothing yet."""
        self.files = {}
        self.folder = tempfile.gettempdir()  # a child has another

    def add_files(self, request: "dict") -> "dict":
        """Keep the files of a network; see ``ModelFiles``."""
        self.files[request["digest"]] = ModelFiles(request, self.folder)
        return {"status": "ok"}

    def new_file(self) -> "str":
        """Return the path of an empty file for the arrays of a reference, which exists before a child is forked."""
        path = os.path.join(self.folder, "reference.arrays")
        with open(path, "wb"):
            return path

    def expect(self, request: "dict") -> "dict":
        """Return a reference as ``measure`` takes it; its arrays follow in pieces."""
        reference = {name: request[name] for name in ("facts", "arrays", "base")}
        return dict(reference, files=self.files[request["files"]], path=self.new_file(), content=hashlib.sha256())

    @staticmethod
    def append(reference: "dict", data: "str") -> "dict":
        """Append a piece, in base64, to the arrays of a reference."""
        piece = base64.b64decode(data)
        reference["content"].update(piece)
        with open(reference["path"], "ab") as file:
            file.write(piece)
        return {"status": "ok"}

    @staticmethod
    def piece(path: "str", offset: "int", size: "int") -> "dict":
        """Return a piece of a file."""
        with open(path, "rb") as file:
            file.seek(offset)
            return {"status": "ok", "data": base64.b64encode(file.read(size)).decode("ascii")}
