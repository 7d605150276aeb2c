"""What a run found: counts, failures by signature, refusals, spills; as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzzing.limits import is_documented
from tests.fuzzing.running.check import CRASH, REFUSED, TIMEOUT, WRONG, Outcome


@dataclass
class Report:
    """Results of many programs."""

    backend: str
    profile: str
    first_seed: int
    entries: dict[Any, Outcome] = field(default_factory=dict)
    texts: dict[Any, str] = field(default_factory=dict)
    reduced: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, seed: Any, outcome: Outcome, text: str) -> None:
        self.entries[seed] = outcome
        if text:
            self.texts[seed] = text

    def groups(self, *kinds: str) -> list[tuple[str, str, list[Any]]]:
        """(kind, signature, seeds), most frequent first."""
        found: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for seed, outcome in self.entries.items():
            if outcome.kind in kinds:
                found[outcome.kind, outcome.signature].append(seed)
        return [(*key, sorted(seeds)) for key, seeds in sorted(found.items(), key=lambda item: -len(item[1]))]

    @property
    def failures(self) -> int:
        return sum(outcome.kind in (WRONG, CRASH, TIMEOUT) for outcome in self.entries.values())

    def summary(self) -> str:
        counts = Counter(outcome.kind for outcome in self.entries.values())
        size = max(1, len(self.entries))
        lines = [
            f"{len(self.entries)} programs from seed {self.first_seed} on, backend {self.backend}, "
            f"profile {self.profile}, {self.seconds:.0f} s"
        ]
        lines += [
            f"  {name:8} {counts[name]:6}  {100 * counts[name] / size:6.2f} %"
            for name in ("right", WRONG, CRASH, TIMEOUT, REFUSED)
        ]
        kernels = sum(outcome.kernels for outcome in self.entries.values())
        spills = [(seed, *spill) for seed, outcome in self.entries.items() for spill in outcome.spills]
        if kernels:
            again = sum(outcome.again for outcome in self.entries.values())
            chosen_again = f", {again} scheduled again" if again else ""
            lines.append(f"  {kernels} kernels{chosen_again}, {len(spills)} spill: {100 * len(spills) / kernels:.2f} %")
            lines += [
                f"    seed {seed}: {name} {nbytes} bytes" for seed, name, nbytes in sorted(spills, key=lambda s: -s[2])
            ]
        for kind, signature, seeds in self.groups(WRONG, CRASH, TIMEOUT):
            lines.append(f"{kind} x{len(seeds)}: {signature}")
            lines.append(f"    seeds {', '.join(map(str, seeds[:12]))}{' ...' if len(seeds) > 12 else ''}")
        for _, signature, seeds in self.groups(REFUSED):
            known = "documented" if is_documented(self.entries[seeds[0]].message) else "NOT in docs/limits.md"
            lines.append(f"refused x{len(seeds)}: {signature}   ({known}; seed {seeds[0]})")
        declined = Counter(text for outcome in self.entries.values() for text in outcome.declined)
        lines += [f"refused in a program that is right x{count}: {text}" for text, count in declined.most_common()]
        return "\n".join(lines)

    def write(self, path: Path) -> None:
        """Everything, as JSON."""
        data = {
            "backend": self.backend,
            "profile": self.profile,
            "first_seed": self.first_seed,
            "seconds": self.seconds,
            "counts": Counter(outcome.kind for outcome in self.entries.values()),
            "kernels": sum(outcome.kernels for outcome in self.entries.values()),
            "declined": Counter(text for outcome in self.entries.values() for text in outcome.declined),
            "entries": {str(s): asdict(o) for s, o in self.entries.items() if o.kind != "right" or o.spills},
            "texts": {str(s): t for s, t in self.texts.items()},
            "reduced": self.reduced,
        }
        path.write_text(json.dumps(data, indent=1))
