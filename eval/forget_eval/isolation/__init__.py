"""Adapters in a process of their own: workers, their environments, and the choice between them.

`selection.select` is the way in. A worker is `bootstrap.py`, run by the Python of an environment or by this one; it
takes our packages from this process's folders, so the environment holds nothing but the system. Run and worker speak
JSON, one object a line, over pipes that nothing else knows:

    to the worker     {"do": "call", "arguments": ["recall_texts", "Where?"], "keywords": {"k": 10}}
    while it works    {"embed": ["Where?"], "number": 0}, answered by {"vectors": base64 of float32, "shape": [1, 384],
                      "number": 0}
    from the worker   {"value": ...}, or {"lacking": message}: NotImplementedError, or {"fault": {kind, message, ...}}

Vectors have a pipe of their own, so that any thread of a system may ask for them. The embedder stays in the run, where
its cache is. What a system prints goes to a file whose end is shown when the worker dies.

Nothing is imported here: a worker takes `messages` and `worker` alone, and those need the standard library only.
"""
