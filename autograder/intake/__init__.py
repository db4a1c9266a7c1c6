"""From what students hand in to `Submission` records.

Everything that is read here is hostile: it is read within limits and as text. Nothing is evaluated,
imported or parsed by Python's own parser, and no notebook library is loaded.
"""
