"""Scans on behalf of a worker: files in a process of their own, live values in this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from orchestrator.domain.codes import ErrorCode
from orchestrator.domain.contract import Fingerprint
from orchestrator.domain.errors import DeadlinePassed, Transient
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.formats import Unscannable
from orchestrator.scan.keys import Keys
from orchestrator.scan.report import Doubt, FileReport, Report


class ProcessScanner:
    """Looks into files without opening them here; `patience` is how long one scan may take."""

    def __init__(self, keys: Keys, patience: timedelta) -> None:
        """Take the keys under which the fingerprints are made."""
        self._keys, self._patience = keys, patience

    def files(self, paths: Sequence[Path], wanted: Mapping[str, Collection[Fingerprint]], marker: bytes) -> Report:
        """Look once through files for what each owner wants, and for the marker.

        Raises `DeadlinePassed` where the scan takes too long, and `Transient` where its process ends badly.
        """
        asked = {
            "keys": {"base": f"{self._keys.base:x}", "window": self._keys.window.hex(), "seal": self._keys.seal.hex()},
            "paths": [str(path) for path in paths],
            "wanted": {owner: [(print_.roll, print_.mac) for print_ in prints] for owner, prints in wanted.items()},
            "marker": marker.hex(),
        }
        command = [sys.executable, "-m", "orchestrator.scan.child"]
        try:
            done = subprocess.run(  # noqa: S603 - our own command
                command,
                input=json.dumps(asked).encode(),
                capture_output=True,
                timeout=self._patience.total_seconds(),
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise DeadlinePassed from None
        except (OSError, subprocess.CalledProcessError):
            raise Transient(code=ErrorCode.INCONCLUSIVE) from None
        said = json.loads(done.stdout)
        files = tuple(
            FileReport(
                path=Path(file["path"]),
                named=Path(file["named"]),
                size=file["size"],
                hits=file["hits"],
                doubt=None if file["doubt"] is None else Doubt(file["doubt"]),
                unscannable=None if file["unscannable"] is None else Unscannable(file["unscannable"]),
            )
            for file in said["files"]
        )
        return Report(files=files, control_found=said["control_found"])

    def held(
        self, values: Iterable[bytes], wanted: Mapping[str, Collection[Fingerprint]]
    ) -> Mapping[str, frozenset[Fingerprint]]:
        """Give for each owner which of its fingerprints lie in live values."""
        from orchestrator.scan.values import held_by_others  # noqa: PLC0415 - numpy loads where it is needed

        return held_by_others(values, wanted, by=Fingerprinter(self._keys))
