"""The MemBehave evaluation: from memory to assistant, from request to deletions, from item to transcript."""
