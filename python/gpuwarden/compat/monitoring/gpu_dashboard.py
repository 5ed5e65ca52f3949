"""`python -m monitoring.gpu_dashboard …` is `gpuwarden top …`."""
from gpuwarden.program import replace_with_program

if __name__ == "__main__":
    replace_with_program(["top"])
