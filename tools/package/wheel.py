"""Writes the wheel: the SDK, the program for Node.js inside it, and the command `gpuwarden`. Same input, same bytes.

    python3 wheel.py PYTHON_FOLDER APPLICATION OUT_FOLDER EPOCH_SECONDS
"""
import base64
import hashlib
import os
import re
import sys
import time
import tomllib
import zipfile

TAG = "py3-none-any"
#: Where the launcher (program.py) looks for it.
APPLICATION = "gpuwarden/_application"


def files_under(folder):
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if not name.endswith(".pyc"):
                path = os.path.join(place, name)
                yield os.path.relpath(path, folder).replace(os.sep, "/"), path


def metadata(project, version, readme):
    lines = ["Metadata-Version: 2.1", "Name: %s" % project["name"], "Version: %s" % version, "Summary: %s" % project["description"]]
    lines += ["Keywords: %s" % ",".join(project["keywords"]), "License: MIT"]
    lines += ["Classifier: %s" % one for one in project["classifiers"]]
    lines += ["Requires-Python: %s" % project["requires-python"], "License-File: LICENSE"]
    for extra, needed in sorted(project.get("optional-dependencies", {}).items()):
        lines += ["Provides-Extra: %s" % extra]
        lines += ['Requires-Dist: %s ; extra == "%s"' % (one, extra) for one in needed]
    return "\n".join(lines + ["Description-Content-Type: text/markdown", "", readme])


def main():
    python, application, out, epoch = sys.argv[1:]
    with open(os.path.join(python, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    with open(os.path.join(python, "gpuwarden", "_version.py"), encoding="utf-8") as file:
        version = re.search(r'__version__ = "([^"]+)"', file.read()).group(1)
    with open(os.path.join(python, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    info = "gpuwarden-%s.dist-info" % version
    contents = [("gpuwarden/" + name, path) for name, path in files_under(os.path.join(python, "gpuwarden"))]
    contents += [(APPLICATION + "/" + name, path) for name, path in files_under(application)]
    made = [
        (info + "/METADATA", metadata(project, version, readme)),
        (info + "/WHEEL", "Wheel-Version: 1.0\nGenerator: gpuwarden\nRoot-Is-Purelib: true\nTag: %s\n" % TAG),
        (info + "/entry_points.txt", "".join("[console_scripts]\n%s = %s\n" % one for one in sorted(project["scripts"].items()))),
        (info + "/top_level.txt", "gpuwarden\n"),
    ]
    contents.append((info + "/LICENSE", os.path.join(python, "LICENSE")))
    target = os.path.join(out, "gpuwarden-%s-%s.whl" % (version, TAG))
    moment = time.gmtime(max(int(epoch), 315532800))[:6]
    records = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:

        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append("%s,sha256=%s,%d" % (name, digest, len(data)))

        for name, path in sorted(contents):
            with open(path, "rb") as file:
                add(name, file.read(), 0o755 if os.access(path, os.X_OK) else 0o644)
        for name, text in made:
            add(name, text.encode(), 0o644)
        record = info + "/RECORD"
        text = "\n".join(records + [record + ",,", ""])
        add(record, text.encode(), 0o644)
    print(target)


main()
