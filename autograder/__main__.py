"""`python -m autograder`: the same as the command `autograder`."""

from autograder.cli import main

main()
