"""`python -m gpuwarden.gpu_dashboard --gpu 0 --interval 0.5` is `gpuwarden top --gpu 0 --interval 0.5`."""
from .program import replace_with_program

if __name__ == "__main__":
    replace_with_program(["top"])
