"""The memory of another process while it runs."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil


@dataclass
class Watch:
    """Memory of a process, sampled while it runs."""

    pid: int
    seen: list[float] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        process = psutil.Process(self.pid)
        while not self.ended.wait(0.25):
            try:
                self.seen.append(process.memory_info().rss / 2**20)
            except psutil.Error:
                return


@contextmanager
def watching(pid: int) -> Iterator[Watch]:
    watch = Watch(pid)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.ended.set()
        thread.join(5)


def growth_of(seen: Sequence[float]) -> float:
    """Last tenth over the tenth at a third: start-up and the writing of the table are not asked about."""
    tenth = max(1, len(seen) // 10)
    early, late = seen[len(seen) // 3 :][:tenth], seen[-2 * tenth :][:tenth]
    return (sum(late) / len(late)) / (sum(early) / len(early)) if early and late else 1.0
