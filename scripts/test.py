"""Runs the test programs of the workspace, two at a time: scripts/test.py PROGRAMS

PROGRAMS is what `cargo test --no-run --message-format=json` printed. Some tests wait for a browser or a server, others only
compute, so two programs together leave the processors idle less often. What a program says is printed when it ends.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

AT_ONCE = 2
# It takes longer than any other, so it must not begin last.
FIRST = "pages"
PRINTING = threading.Lock()


def programs(lines):
    """The name, the directory and the file of each test program, in the order in which they should begin."""
    found = []
    for line in lines:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            directory = pathlib.Path(message["manifest_path"]).parent
            target = message["target"]
            name = target["name"] if "test" in target["kind"] else f"{target['name']}, unit tests"
            found.append((f"{directory.name}: {name}", directory, message["executable"]))
    return sorted(found, key=lambda program: not program[0].endswith(f" {FIRST}"))


def run(program):
    """Runs one program; returns its name if it failed."""
    name, directory, file = program
    begun = time.monotonic()
    ended = subprocess.run(
        [file],
        cwd=directory,
        env=os.environ | {"CARGO_MANIFEST_DIR": str(directory)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with PRINTING:
        sys.stdout.write(ended.stdout.decode(errors="replace"))
        print(f"scripts/test: {name}: {time.monotonic() - begun:.0f} s", flush=True)
    return name if ended.returncode != 0 else None


def main(listed):
    found = programs(pathlib.Path(listed).read_text().splitlines())
    if not found:
        sys.exit("scripts/test: there are no test programs")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        failed = [name for name in pool.map(run, found) if name]
    if failed:
        sys.exit(f"scripts/test: failed: {'; '.join(failed)}")


main(*sys.argv[1:])
