"""A socket in front of the container engine, which can be cut, stalled, slowed, and made to answer with errors."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

ERROR = b'{"message":"the disk of the engine is broken"}'
ANSWER = (
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: " + str(len(ERROR)).encode() + b"\r\n\r\n" + ERROR
)


class EngineSocket:
    """A second socket of the engine.

    Attributes:
        path: where it listens.
        failing: requests whose first line has these bytes get ANSWER; empty fails none.
        delay: seconds that each piece of data waits.
        flowing: while it is not set, no data goes either way.
    """

    def __init__(self, path: Path, target: str) -> None:
        """Listen at ``path`` and forward everything to the socket ``target``, both ways."""
        self.path, self.target = path, target
        self.failing = b""
        self.delay = 0.0
        self.flowing = threading.Event()
        self.flowing.set()
        self.ends: list[socket.socket] = []
        self.listener = self.listen()

    def listen(self) -> socket.socket:
        """Accept connections, as an engine that has started; return the listening socket."""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()
        return self.listener

    def accept(self, listener: socket.socket) -> None:
        """Connect whoever comes."""
        with suppress(OSError):
            while True:
                here, _ = listener.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self.target)
                self.ends += [here, there]
                threading.Thread(target=self.pump, args=(here, there), daemon=True).start()
                threading.Thread(target=self.pump, args=(there, here), daemon=True).start()

    def pump(self, source: socket.socket, sink: socket.socket) -> None:
        """Copy one direction to its end."""
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self.flowing.wait()
                time.sleep(self.delay)
                if self.failing and self.failing in data.partition(b"\r\n")[0]:
                    source.sendall(ANSWER)
                    close(source)
                    close(sink)
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def drop(self) -> None:
        """End all connections, and accept new ones."""
        for end in self.ends:
            close(end)
        self.ends = []

    def cut(self) -> None:
        """Be gone, from one moment to the next."""
        self.path.unlink(missing_ok=True)
        close(self.listener)
        self.drop()


def close(end: socket.socket) -> None:
    """Close a socket, also while another thread reads it."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
