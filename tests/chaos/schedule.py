"""What goes wrong and when: from a seed alone, so that a seed replays it."""

import dataclasses
import random

PERIOD_S = 60  # in each some kinds of fault are left out: what often comes together hides what comes alone


@dataclasses.dataclass(frozen=True)
class Event:
    at: float  # s after the beginning
    fault: str
    pick: int  # which of those that are there then
    lasts: float  # s

    def __str__(self):
        lasts = f" for {self.lasts:.1f} s" if self.lasts else ""
        return f"{self.at:7.1f} s  {self.fault.replace('_', ' ')} #{self.pick % 100}{lasts}"


@dataclasses.dataclass(frozen=True)
class Kind:
    weight: float
    lasts: tuple = (0, 0)
    apart: float = 0  # s between the end of one and the next


KINDS = {
    "kill_runner": Kind(6),
    "kill_all_runners_but_one": Kind(1, apart=15),
    "kill_all_runners": Kind(1, apart=15),
    # By its own fault, so that what is in it is suspected: a second one soon after could make it poison.
    "crash_runner": Kind(2, apart=40),
    "pause_runner": Kind(3, lasts=(0.3, 2.5)),
    "hang_runner": Kind(1, apart=20),
    "kill_agent": Kind(2, apart=15),
    "pause_agent": Kind(1, lasts=(1, 5), apart=5),
    "silence_agent": Kind(0.5, lasts=(13, 16), apart=40),
    "kill_gateway": Kind(2, lasts=(0, 1), apart=8),
    "kill_gateway_and_its_runners": Kind(0.4, lasts=(11, 12), apart=60),
    "upgrade_gateway": Kind(2, apart=10),
    "pause_gateway": Kind(2, lasts=(0.3, 2)),
    "reload": Kind(2, apart=10),
    "restart_replica": Kind(2),
    "drain_replica": Kind(2, lasts=(2, 6), apart=3),
    "edit_cluster": Kind(2, lasts=(2, 8), apart=3),
    "burst": Kind(2, apart=8),
}


def make(seed, seconds, every):
    """Events one after the other, `every` seconds apart in the mean, the last before `seconds` are over."""
    chance = random.Random(f"schedule {seed}")
    events, free_at = [], dict.fromkeys(KINDS, 0.0)
    at, period, there = 0.0, -1, list(KINDS)
    while True:
        at += every * chance.uniform(0.4, 1.6)
        if at >= seconds:
            return events
        if int(at // PERIOD_S) != period:
            period = int(at // PERIOD_S)
            there = [name for name in KINDS if chance.random() < 0.75] or list(KINDS)
        fitting = [name for name in there if free_at[name] <= at] or ["kill_runner"]
        name = chance.choices(fitting, [KINDS[one].weight for one in fitting])[0]
        kind = KINDS[name]
        lasts = chance.uniform(*kind.lasts)
        free_at[name] = at + lasts + kind.apart
        events.append(Event(at, name, chance.randrange(1 << 30), lasts))


# One kind of fault alone, at a steady pace: what, and seconds from one to the next. A hang is found after 5 s.
STEADY = {"kills": ("kill_runner", 3.0), "hangs": ("hang_runner", 8.0)}


def make_steady(name, seed, seconds, every=None):
    """The same fault every `every` seconds, each time to a replica by chance."""
    fault, usual = STEADY[name]
    every = every or usual
    chance = random.Random(f"{name} {seed}")
    times = [number * every for number in range(1, int(seconds / every) + 1)]
    return [Event(at, fault, chance.randrange(1 << 30), 0.0) for at in times if at < seconds]
