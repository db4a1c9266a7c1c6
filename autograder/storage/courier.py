"""The program that carries files between a folder's copy on this disk and its address, beside a command that uses it.

    python -P -m autograder.storage.courier < ORDERS

It is a process of its own: libraries of stores start threads, and the command forks graders. Before the command works,
what changed there is fetched. While it works, what it writes is put, whole, as it comes. Where the command is killed,
the courier ends at once; what is not put yet lies in the copy, and the next command puts it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from autograder.errors import KitError, StorageUnavailable
from autograder.explain import explained
from autograder.storage.copy import Copy, Listed, md5_of
from autograder.storage.order import Order, read_orders
from autograder.storage.remote import Remote, unanswered
from autograder.text import clean

_AT_ONCE = 16
"""How many files travel at a time, where the library can do that."""
_PAUSE, _SHARE = 1.0, 20
"""Seconds between two looks at what was written, and how many times as long as such a look takes."""
_LONGEST_PAUSE = 60.0
"""Seconds between two tries, where a store does not answer."""
_SILENCE = 180.0
"""Seconds that one request may go unanswered."""
_MANY = 200
"""So many files take a while: a line says so."""

Say = Callable[[str], None]


class Carrier:
    """One folder, here and there."""

    def __init__(self, order: Order, say: Say) -> None:
        self._order, self._say = order, say
        self._remote, self._copy = Remote(order.address), Copy(Path(order.copy))
        self._claimed = False

    def fetch(self) -> None:
        """Make the copy what stands there, and put what a killed command has not."""
        copy, remote = self._copy, self._remote
        copy.hold(remote.shown)
        if self._order.written:
            self._claim()
        listing = remote.listing(self._say)
        if self._claimed:
            remote.clear_parts()
        difference = copy.difference(listing)
        for key in difference.remove:
            copy.remove(key)
        if len(difference.fetch) > _MANY:
            self._say(f"fetching {len(difference.fetch)} files from {remote.shown}")
        self._each(lambda key: self._take(key, listing[key]), difference.fetch)
        copy.compact()
        if any(copy.changed()):
            self._claim()
            self.put()
            if not self._order.written:
                self.release()

    def put(self) -> None:
        """Put what was written: first what keeps what it replaces, last what is said of all of it."""
        for part in self._copy.changed():
            self._each(self._put_one, part)

    def remove(self) -> None:
        """Remove there what the command has removed here."""
        for key in self._copy.gone():
            self._remote.remove(key)
            self._copy.forget(key)

    def waiting(self) -> int:
        """How many files are not there as they are here."""
        return sum(map(len, self._copy.changed()))

    def release(self) -> None:
        """Others may write there."""
        if self._claimed:
            self._remote.release()
            self._claimed = False

    @property
    def written(self) -> bool:
        """Whether the command writes into the folder."""
        return self._order.written

    @property
    def shown(self) -> str:
        """The address, for people."""
        return self._remote.shown

    def _claim(self) -> None:
        if not self._claimed:
            who = f"process {os.getppid()} on {os.uname().nodename}, since {time.strftime('%Y-%m-%d %H:%M:%S')}"
            self._remote.claim(who, self._copy.identity())
            self._claimed = True

    def _take(self, key: str, listed: Listed) -> None:
        copy, most = self._copy, self._order.most
        if copy.is_content(key, listed):
            return
        content = self._remote.get(key, most) if 0 < listed.size <= most else b""
        if listed.size > most or len(content) > most:
            copy.stand_for(key, most + 1, listed)
        elif copy.write(key, content, listed):
            self._say(
                f"{clean(key)} was changed here and at {self.shown}: what stands there counts, "
                f"the other is kept in {self._order.copy}.aside"
            )

    def _put_one(self, key: str) -> None:
        copy = self._copy
        try:
            content, stamp = copy.read(key)
        except FileNotFoundError:
            return  # it was removed just now
        known, md5 = copy.known.get(key), md5_of(content)
        signature = known.signature if known is not None and known.md5 == md5 else self._remote.put(key, content)
        copy.note(key, signature, stamp, md5)

    def _each(self, act: Callable[[str], None], keys: Iterable[str]) -> None:
        if not self._remote.many_at_once:
            for key in keys:
                act(key)
            return
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            try:
                for _ in threads.map(act, keys):
                    pass
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise


def carry(carriers: list[Carrier], ended: threading.Event) -> None:
    """Put what comes until the command says that it has ended; then what is left.

    Raises:
        StorageUnavailable: something could not be put; says how much, and that nothing is lost.
    """
    written = [carrier for carrier in carriers if carrier.written]
    pause = _PAUSE
    while written and not ended.wait(pause):
        before = time.monotonic()
        try:
            for carrier in written:
                carrier.put()
        except KitError:  # said at the end, if it lasts so long
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            pause = max(_PAUSE, min(_SHARE * (time.monotonic() - before), _LONGEST_PAUSE))
    ended.wait()
    for carrier in written:
        try:
            carrier.put()
            carrier.remove()
            carrier.release()
        except KitError as error:
            raise StorageUnavailable(
                f"{error}; {carrier.waiting()} files are not there yet. They are safe in the copy on this "
                "disk, and the next command puts them"
            ) from error


def main() -> None:
    """Read the orders, fetch, say "ready", put until a line says "end", say "done"; or say what is wrong."""
    parent, answers = os.getppid(), os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer

    def answer(kind: str, text: str = "") -> None:
        os.write(answers, (json.dumps([kind, text]) + "\n").encode())

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
            if line := unanswered(_SILENCE):
                answer("failed", f"{line}. What is not there yet is safe in the copy on this disk")
                break
        os._exit(1)

    def listen() -> None:
        sys.stdin.readline()
        ended.set()

    orders = read_orders(sys.stdin.readline())
    threading.Thread(target=watch, daemon=True).start()
    ended = threading.Event()
    carriers: list[Carrier] = []
    try:
        for order in orders:
            carriers.append(Carrier(order, lambda line: answer("say", line)))
            carriers[-1].fetch()
        answer("ready")
        threading.Thread(target=listen, daemon=True).start()
        carry(carriers, ended)
        answer("done")
    except Exception as error:
        line = explained(error)
        for carrier in carriers:
            _let_go(carrier)
        if line is None:
            raise
        answer("in use" if type(error).__name__ == "ResultsInUse" else "failed", line)
    sys.stdout.flush()
    os._exit(0)  # connections that a library holds open are of no use to anybody


def _let_go(carrier: Carrier) -> None:
    try:
        carrier.release()
    except KitError:
        return  # the next command of this course takes it over


if __name__ == "__main__":
    main()
