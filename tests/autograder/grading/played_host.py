"""A host without a process, for tests of a bench."""

from __future__ import annotations


class PlayedHost:
    """Stands for a host: it has clients, and notes that it was closed."""

    def __init__(self, tier: str, clients: int, extras: tuple[str, ...]) -> None:
        self.tier, self.extras = tier, extras
        self.clients = [object() for _ in range(clients)]
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True
