"""The module names of the older tools: after `import gpuwarden.compat`, `tools.memory`, `monitoring.gpu_monitor`, `monitoring.gpu_dashboard`
and `training.qlora_finetune_monitored` can be imported. Modules of your own under these names come first.
"""
import os
import sys

#: For `PYTHONPATH`: `PYTHONPATH="$(python -m gpuwarden.compat)" python -m tools.memory profile --duration 60`.
FOLDER = os.path.dirname(os.path.abspath(__file__))

if FOLDER not in sys.path:
    sys.path.append(FOLDER)
