"""`python -m forget_datasets` is the command `forget-datasets`."""

from forget_datasets.cli import main

if __name__ == "__main__":
    main()
