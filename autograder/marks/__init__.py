"""The mark that counts: results, points by hand, lateness, weights."""
