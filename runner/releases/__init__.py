"""Releases that an index offers: lock files, their check, pinned images, and environments for further releases.

``index`` lists the versions of a package, ``candidates`` makes the environment of a release from one of the matrix,
``lock_requests`` and ``lock`` resolve it to a lock file, and ``lock_check`` holds the locks of a matrix to it.
``named`` reads the releases of the command line, ``named_environments`` finds what they become, and ``release_locks``
makes and keeps their locks, with ``release_files``, ``nightly_builds`` and ``silent_indexes``. ``followed`` finds the
environments that follow a package, ``kept`` has the locks of the releases that nights built, and ``image_pins`` the
digests of images.
"""
