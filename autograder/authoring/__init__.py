"""From source notebooks to what students get and what suites compare with."""
