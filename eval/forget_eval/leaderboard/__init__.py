"""Results of several people: runs as rows, published as a dataset, merged and ranked."""
