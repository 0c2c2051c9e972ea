"""`python -m ottla`, and the command `ottla`."""

import gc
import os
import sys
from collections.abc import Callable


def run() -> None:
    gc.disable()  # imports create many objects and free few
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"] and "_OTTLA_COMPLETE" not in os.environ:
        from . import serving

        options = serving.plain_options(arguments[1:])
        if options is not None:
            return _end_as_click(lambda: serving.run(options))
    from .cli import main

    gc.enable()
    main(prog_name="ottla")
    return None


def _end_as_click(call: Callable[[], None]) -> None:
    """Ends the process with 1, as click does, after Ctrl-C and when nothing reads its output any more."""
    try:
        call()
    except KeyboardInterrupt:
        print("\nAborted!", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes at its end
        sys.exit(1)


if __name__ == "__main__":
    run()
