"""Rows played by several processes at once, written as one process would write them.

The run itself reads rows, embeds their texts ahead and writes transcripts in the order of the rows; it makes no system.
Every player is a process with a system of its own, made from a `seats.Seat`. Run and player speak over a socket pair:

    to the player     pickled: the seat and what the embedder is; then ("play", units), ("vectors", …), ("end",)
    from the player   bytes, the first of which says what follows; nothing is unpickled that a system could have forged

A player holds the vectors of the rows it plays; what a system embeds beyond them, it asks of the run, so that no player
loads a model. It ends when the run lets go of the socket, by whatever means, and takes what the system started with it,
but for what the system has given a session of its own.

A system that ends its process ends the run, as with one process: all rows before that one are written, and the same
command goes on from there. Isolated systems end a worker of their player's, which is an error of the one row.
"""
