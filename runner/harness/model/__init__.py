"""A user's network: import its file, make the reference, and verify other environments against that.

``files`` unpacks and imports the file, ``construct`` calls its class, ``arrays`` and ``blob`` carry outputs and states,
``reference`` computes what the base environment gives, ``compare`` and ``trial`` verify, and ``mistakes`` puts what a
user's code raises into a sentence. The part of each framework is in its adapter, see ``adapters.user_model``.
"""
