"""The web application of `autograder serve`: students hand in, see their page, and try again."""
