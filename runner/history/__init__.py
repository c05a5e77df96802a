"""The history: the cells of every stored run in one database, SQLite or PostgreSQL.

Run folders remain the source. The history can be deleted and rebuilt from them.
"""
