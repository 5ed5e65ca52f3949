"""Python runs this at its start under `gpuwarden run`: it waits for the program to import PyTorch, and imports nothing of it itself."""
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(_HERE)


class _BundledPackage:
    """Asked last: the SDK that came with the program, where none is installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "gpuwarden":
            return None
        return importlib.util.spec_from_file_location(name, os.path.join(_PACKAGE, "__init__.py"), submodule_search_locations=[_PACKAGE])


def _run_hidden():
    """The sitecustomize that would have run without this one. Its errors are its own, and Python reports them as always."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _wait_for_frameworks():
    off = ("1", "true", "yes", "on")
    if any(os.environ.get(name, "").strip().lower() in off for name in ("GPUWARDEN_NO_HOOKS", "GPUWARDEN_DISABLED")):
        return
    sys.meta_path.append(_BundledPackage)
    # By its file, not by `import gpuwarden.…`: the package itself is only loaded once the program trains.
    spec = importlib.util.spec_from_file_location("_gpuwarden_import_watch", os.path.join(_PACKAGE, "import_watch.py"))
    watch = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = watch
    spec.loader.exec_module(watch)
    watch.install()


try:
    _wait_for_frameworks()
except Exception as error:
    if sys.flags.verbose:
        sys.stderr.write("gpuwarden: no hooks: %s: %s\n" % (type(error).__name__, error))
_run_hidden()
