"""Where the blocks of a trace go: to the program that writes its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from ....protocol.text import Json
from ...log_file import LogFile
from ...machine import MachineTime
from .stream import Stream

MODULE: Final = f"{__package__}.writer"
END_SECONDS: Final = 10.0  # for which the end of the broker waits


class Sink(Stream):
    """The stream to the program. Raises OSError if the file cannot be opened."""

    def __init__(
        self, path: str, max_bytes: int, backups: int, about: Mapping[str, Json], machine: MachineTime
    ) -> None:
        file = LogFile(path, max_bytes, backups)
        try:
            arguments = [path, str(file.descriptor), str(max_bytes), str(backups), json.dumps(about)]
            program = machine.start_program(MODULE, arguments, [file.descriptor])
        finally:
            file.close()
        super().__init__(program, machine, f"the program that writes the trace {path}")
