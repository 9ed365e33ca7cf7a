"""Rows played on a Ray cluster, written as one process would write them.

The run itself reads rows, embeds their texts ahead and appends transcripts in the order of the rows; it makes no
system. Every actor has a system of its own, made from a `parallel.seats.Seat`. Rows go out in pieces, which lie at the
same places of the dataset whoever plays them; the vectors of their texts travel with them through Ray's object store,
and what a system embeds beyond these, it asks of the run. An actor writes the transcripts of a piece as a shard, JSON
lines behind an fsspec URL, whole or not at all. The run merges the shards in their order.

Ray places the actors, and starts a lost one again wherever there is room. The pieces that it had go to whoever is free
before that. A piece is merged once, however often it was played. A run that goes on takes the shards that are there.
"""
