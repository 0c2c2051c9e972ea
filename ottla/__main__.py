"""`python -m ottla`, and the command `ottla`."""

import gc


def run() -> None:
    gc.disable()  # imports create many objects and free few
    from .cli import main

    gc.enable()
    main(prog_name="ottla")


if __name__ == "__main__":
    run()
