"""`python -m gpuwarden.memory profile …` is `gpuwarden profile …`."""
from ..program import replace_with_program

replace_with_program([])
