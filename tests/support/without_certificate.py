"""Speak TLS to HOST PORT without a certificate, and print ``refused`` or what it answers."""

import socket
import ssl
import sys

context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as plain:
    try:
        with context.wrap_socket(plain) as stream:
            print(stream.recv(100))  # noqa: T201
    except ConnectionError:
        print("refused")  # noqa: T201
    except ssl.SSLError as error:
        print("refused" if "alert certificate required" in str(error) else error)  # noqa: T201
