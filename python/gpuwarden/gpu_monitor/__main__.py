"""`python -m gpuwarden.gpu_monitor …` is `gpuwarden monitor …`."""
from ..program import replace_with_program

replace_with_program(["monitor"])
