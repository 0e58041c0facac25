"""pitstop's handoff as a compactor of the public compaction-conformance-kit (PyPI, 0.8.0), without network and without a model:

    pip install compaction-conformance-kit==0.8.0
    compaction-kit check benches/handoff/kit.py:Pitstop

The kit hands its session to the first round and each round's text to the next one. Here the first round runs all of them
through the product, one reboot after the other: between two rounds a person would go on in the session that was started, and
pitstop keeps more of a run than its last handoff.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from compaction_kit.compacted import CompactedContext

REPOSITORY = Path(__file__).resolve().parents[2]


class Pitstop:
    """Every round is a reboot of the product's core."""

    name = "pitstop"

    def __init__(self):
        self.handoffs = []

    def compact(self, turns, round_num=1, budget_chars=None):
        if round_num == 1:
            self.handoffs = reboots(turns)
        return CompactedContext(
            text=self.handoffs[round_num - 1], compactor_name=self.name, round_num=round_num
        )


def reboots(turns):
    """The handoffs of a session of these turns and of those that follow it."""
    with tempfile.TemporaryDirectory() as place:
        lines = [json.dumps({"role": turn.role, "text": turn.text}) for turn in turns]
        Path(place, "turns.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        subprocess.run(
            ["cargo", "bench", "--quiet", "--bench", "handoff"],
            cwd=REPOSITORY,
            env={**os.environ, "PITSTOP_HANDOFF_KIT": place},
            check=True,
        )
        handoffs = sorted(Path(place).glob("handoff-*.md"))
        return [handoff.read_text(encoding="utf-8") for handoff in handoffs]
