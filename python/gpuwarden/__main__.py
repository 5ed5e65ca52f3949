"""`python -m gpuwarden …` is `gpuwarden …`."""
from .program import replace_with_program

replace_with_program([])
