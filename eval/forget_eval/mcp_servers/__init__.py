"""Memory servers that speak MCP: what maps our operations to a server's tools, and the connection to it.

A mapping (`mapping`) is a TOML file; those of well-known servers lie in `mappings`. A connection (`connection`) is the
SDK's client in a thread of its own, to a URL or to a command that runs below `isolation/guard.py`. `answers` turns what
a tool answers into ids, texts and scores. `embeddings` lets a server have the embedder of a run. `proposal` writes a
mapping for a server that nobody has mapped yet, and `schemas` reads what a tool says of its arguments.

Nothing is imported here, and only `connection` knows processes.
"""
