"""Measures pages of the demo with Lighthouse: scripts/lighthouse.py PROGRAM LIGHTHOUSE DIRECTORY."""

import json
import os
import pathlib
import subprocess
import sys

from screenshots import PAGES, Browser, Demo

MEASURED = ["dashboard", "pipeline", "accounts", "account", "clients", "campaigns", "deliveries", "settings"]
CATEGORIES = ["performance", "accessibility", "best-practices"]
# The options of Lighthouse for each device. Its own default is a phone on a slow network.
DEVICES = {"desktop": ["--preset=desktop"], "mobile": []}
LEAST_POINTS = 95
MOST_RUNS = 3
# The live updates are a response without an end, which Lighthouse would wait for.
LONGEST_LOAD_MS = 12_000


def log_in(browser, demo):
    """Logs in, and returns the addresses of the pages and the cookie."""
    browser.go(f"{demo.address}/login")
    browser.send("#email", demo.login)
    browser.send("#password", demo.password)
    browser.send("main form button")
    addresses = {}
    for name, path, link in PAGES:
        if name in MEASURED:
            browser.go(demo.address + path)
            find = "return document.querySelector(arguments[0]).href"
            addresses[name] = browser.script(find, link) if link else demo.address + path
    cookie = browser.call("/cookie/rapport")
    return addresses, f"{cookie['name']}={cookie['value']}"


def measure(lighthouse, address, device, headers, report):
    """Runs Lighthouse once, and returns the points of each category."""
    command = [
        lighthouse,
        address,
        *DEVICES[device],
        "--quiet",
        f"--only-categories={','.join(CATEGORIES)}",
        f"--extra-headers={headers}",
        f"--max-wait-for-load={LONGEST_LOAD_MS}",
        "--chrome-flags=--headless --no-sandbox --disable-gpu",
        "--output=json",
        "--output=html",
        f"--output-path={report}",
    ]
    environment = {"CHROME_PATH": "/usr/bin/chromium-headless-shell", **os.environ}
    subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL)
    measured = json.loads(pathlib.Path(f"{report}.report.json").read_text())
    shown = measured["finalDisplayedUrl"]
    if shown != address:
        sys.exit(f"{address} led to {shown}")
    return [round(100 * measured["categories"][category]["score"]) for category in CATEGORIES]


def best_of_runs(lighthouse, address, device, headers, report):
    best = [0] * len(CATEGORIES)
    for _ in range(MOST_RUNS):
        points = measure(lighthouse, address, device, headers, report)
        best = [max(pair) for pair in zip(best, points)]
        if min(best) >= LEAST_POINTS:
            break
    return best


def main(program, lighthouse, directory):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    headers = directory / "headers.json"
    poor = []
    with Demo(program) as demo:
        with Browser() as browser:
            addresses, cookie = log_in(browser, demo)
        headers.write_text(json.dumps({"Cookie": cookie}))
        print(f"{'page':12} {'device':9}" + "".join(f"{category:>16}" for category in CATEGORIES), flush=True)
        for name in MEASURED:
            for device in DEVICES:
                report = directory / f"{name}-{device}"
                points = best_of_runs(lighthouse, addresses[name], device, headers, report)
                print(f"{name:12} {device:9}" + "".join(f"{point:16}" for point in points), flush=True)
                if min(points) < LEAST_POINTS:
                    poor.append(f"{name} on {device}: see {report}.report.html")
    headers.unlink()
    if poor:
        sys.exit(f"less than {LEAST_POINTS} points:\n  " + "\n  ".join(poor))


main(*sys.argv[1:])
