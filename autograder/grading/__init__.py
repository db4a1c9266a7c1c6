"""The trusted half's work: one submission in front of the hidden suite, and a class of them."""
