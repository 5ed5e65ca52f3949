"""`gpuwarden.memory` under its older name. `python -m tools.memory profile …` is `gpuwarden profile …`."""
from gpuwarden.memory import *  # noqa: F403
from gpuwarden.memory import __all__ as __all__

if __name__ == "__main__":
    from gpuwarden.program import replace_with_program

    replace_with_program([])
