"""`python -m autograder`: the same as the command `autograder`."""

from autograder.cli.commands import main

main()
