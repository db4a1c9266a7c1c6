"""nbgrader reads this file for every command; the formgrader reads it when Jupyter starts."""

from pathlib import Path

from autograder.nbgrader.settings import configure

ROOT = Path(__file__).resolve().parent

c = get_config()  # noqa: F821  (nbgrader defines it)
configure(c, ROOT)

# The exchange: a folder of the course, which works for one account. For a class on one machine,
# name a folder that everybody can write to, for example "/srv/nbgrader/exchange", here and in
# each student's nbgrader_config.py.
c.Exchange.root = str(ROOT / "exchange")
