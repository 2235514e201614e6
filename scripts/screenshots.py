"""Takes screenshots of the demo's pages: scripts/screenshots.py PROGRAM DIRECTORY [--readme].

It drives Chromium with chromedriver over plain HTTP (W3C WebDriver), so that nothing else has to be installed.
"""

import base64
import json
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

# Name, path, and the link to follow from there if the page's address contains an id.
PAGES = [
    ("dashboard", "/", None),
    ("pipeline", "/pipeline", None),
    ("accounts", "/accounts", None),
    ("account-new", "/accounts/new", None),
    ("account-lookup", "/accounts/lookup", None),
    ("account", "/clients?tab=tracked", "a[href^='/accounts/acc_']"),
    ("clients", "/clients", None),
    ("campaigns", "/campaigns", None),
    ("campaign-new", "/campaigns/new", None),
    ("campaign", "/campaigns", "a[href^='/campaigns/cmp_']"),
    ("channels", "/channels", None),
    ("channel", "/channels", "a[href^='/channels/chn_']"),
    ("imports", "/imports", None),
    ("import", "/imports", "a[href^='/imports/imp_']"),
    ("webhooks", "/webhooks", None),
    ("webhook", "/webhooks", "a[href^='/webhooks/whk_']"),
    ("webhook-new", "/webhooks/new", None),
    ("webhook-check", "/webhooks/check", None),
    ("webhooks-receiving", "/webhooks/receiving", None),
    ("webhooks-events", "/webhooks/events", None),
    ("deliveries", "/deliveries", None),
    ("delivery", "/deliveries", "a[href^='/deliveries/']"),
    ("redeliveries", "/redeliveries", None),
    ("redelivery-new", "/redeliveries/new", None),
    ("settings", "/settings", None),
    ("settings-deletion", "/settings/deletion", None),
    ("settings-currencies", "/settings/currencies", None),
    ("settings-cadence", "/settings/cadence", None),
    ("settings-digest", "/settings/digest", None),
    ("settings-members", "/settings/members", None),
    ("settings-security", "/settings/security", None),
    ("settings-sso", "/settings/sso", None),
    ("settings-tokens", "/settings/tokens", None),
    ("settings-ingest", "/settings/ingest", None),
    ("settings-mail", "/settings/mail", None),
    ("settings-audit", "/settings/audit", None),
    ("settings-system", "/settings/system", None),
    ("profile", "/profile", None),
]
# Width and minimum height, in pixels.
SIZES = [(1280, 800), (390, 844)]
THEMES = ["light", "dark"]
# What the README shows: pages with their theme, as much as fits the window.
README = {"dashboard": "light", "pipeline": "light", "clients": "light", "account": "dark"}
README_SIZE = (1280, 820)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Demo:
    """The running demo; it stops at the end of the `with` block."""

    def __init__(self, program):
        listen = f"127.0.0.1:{free_port()}"
        command = [program, "--listen", listen, "--log", "error", "demo"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = {}
        for line in self.process.stdout:
            if found := re.match(r"(address|login|password) +(\S+)", line):
                said[found[1]] = found[2]
            if "is running at" in line:
                break
        else:
            sys.exit("the demo did not start")
        self.address, self.login, self.password = said["address"], said["login"], said["password"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Browser:
    """One window of Chromium."""

    def __enter__(self):
        port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL)
        self.session = f"http://127.0.0.1:{port}"
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        chromium = {"args": arguments, "binary": "/usr/bin/chromium-headless-shell"}
        options = {"alwaysMatch": {"goog:chromeOptions": chromium}}
        for _ in range(100):
            try:
                begun = self.call("/session", {"capabilities": options})
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        self.session += f"/session/{begun['sessionId']}"
        return self

    def __exit__(self, *_):
        self.driver.terminate()
        self.driver.wait()

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.session + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def chromium(self, command, **parameters):
        return self.call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def script(self, text, *arguments):
        return self.call("/execute/sync", {"script": text, "args": list(arguments)})

    def go(self, address):
        self.call("/url", {"url": address})

    def send(self, selector, text=None):
        """Types into an element, or clicks it."""
        found = self.call("/element", {"using": "css selector", "value": selector})
        element = next(iter(found.values()))
        action, body = ("click", {}) if text is None else ("value", {"text": text})
        self.call(f"/element/{element}/{action}", body)

    def picture(self, size, theme, is_whole=True):
        """A screenshot of the page in its full height, or as much as fits."""
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.chromium("Emulation.setEmulatedMedia", features=[feature])
        width, least = size
        for height in (least, None) if is_whole else (least,):
            height = height or max(least, self.script("return document.documentElement.scrollHeight"))
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            self.chromium("Emulation.setDeviceMetricsOverride", **metrics)
        return base64.b64decode(self.call("/screenshot"))


def take_for_readme(browser, name, directory):
    if theme := README.get(name):
        suffix = "-dark" if theme == "dark" else ""
        (directory / f"{name}{suffix}.png").write_bytes(browser.picture(README_SIZE, theme, is_whole=False))


def take(browser, name, directory):
    for size in SIZES:
        for theme in THEMES:
            (directory / f"{name}-{size[0]}-{theme}.png").write_bytes(browser.picture(size, theme))


def status(browser):
    entry = "return performance.getEntriesByType('navigation')[0].responseStatus"
    return browser.script(entry)


def main(program, directory, readme=None):
    directory = pathlib.Path(directory)
    take_one = take_for_readme if readme else take
    directory.mkdir(parents=True, exist_ok=True)
    missing = []
    with Demo(program) as demo, Browser() as browser:
        browser.go(f"{demo.address}/login")
        take_one(browser, "login", directory)
        browser.send("#email", demo.login)
        browser.send("#password", demo.password)
        browser.send("main form button")
        for name, path, link in PAGES:
            if readme and name not in README:
                continue
            browser.go(demo.address + path)
            if link and (href := browser.script("return document.querySelector(arguments[0])?.href", link)):
                browser.go(href)
            elif link:
                missing.append(f"{name}: no {link} on {path}")
                continue
            if status(browser) != 200:
                missing.append(f"{name}: {path} answered {status(browser)}")
                continue
            take_one(browser, name, directory)
            print(f"  {name}", flush=True)
    print(f"screenshots are in {directory}")
    if missing:
        sys.exit("not taken:\n  " + "\n  ".join(missing))


if __name__ == "__main__":
    main(*sys.argv[1:])
