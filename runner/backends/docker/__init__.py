"""The docker backend: environments as images, and servers in containers that are shut off from everything else.

``backend`` is the Backend. It asks the engine and its registries what exists (``survey``), builds and pulls images
(``build``, with ``build_log`` for what people read of it), and starts servers in containers (``channel``, over the
frames of ``streams``, with the volume of ``cache``). ``options`` and ``image_names`` hold what is asked of the engine
as values, and touch nothing. ``cleanup`` says who removes containers, images and volumes, and when. ``client`` is the
connection: it turns every exception of the Docker SDK into an ``EngineError``; what the engine answers about one image
becomes a ``ProvisionError`` in ``build``.

Nothing is exported here, so that the package can be imported without the Docker SDK.
"""
