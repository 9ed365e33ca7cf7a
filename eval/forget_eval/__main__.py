"""`python -m forget_eval` is the command `forget-eval`."""

from forget_eval.cli import main

main(prog_name="forget-eval")
