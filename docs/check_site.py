"""Check a built site: every link inside leads somewhere, and no page is wider than the screen.

Usage: python docs/check_site.py docs/_build/html [--pictures FOLDER]

Links are read from the files. Widths are measured in Chromium, where there is one, at 1280 and 400
pixels.
"""

import argparse
import functools
import html.parser
import http.server
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOOKED_AT = {
    "index": "index.html",
    "guide": "partly-measured.html",
    "paper": "paper.html",
    "needs": "needs.html",
    "reference": "api/index.html",
    "class": "api/generated/entangled_kernels.EntangledKernelRidgeCV.html",
    "function": "api/generated/entangled_kernels.linalg.partial_trace.html",
    "gallery": "auto_examples/index.html",
    "example": "auto_examples/plot_intervals.html",
}
WIDTHS = (1280, 400)
HEIGHT = 1800
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Page(html.parser.HTMLParser):
    """Addresses that a page leads to, and places in it that can be led to."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Take note of a tag."""
        found = dict(attributes)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        self.addresses += [found[name] for name in ("href", "src") if found.get(name)]


def pages_of(site):
    """The pages of a site; the theme keeps templates in a folder of its own."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def broken_links(site):
    """Links inside the site that lead nowhere, as (page, address)."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in pages_of(site)}
    for path, page in pages.items():
        for address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            # A fragment that begins with ":~:" is for the browser to search for.
            known = (
                not place
                or place.startswith(":~:")
                or target not in pages
                or place in pages[target].places
            )
            if not target.exists() or not known:
                yield path.relative_to(site).as_posix(), address


def find_browser():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def run_browser(browser, *arguments):
    """What the browser prints, run once and without a window."""
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
    ]
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [
                *command,
                f"--user-data-dir={profile}",
                "--virtual-time-budget=8000",
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    return done.stdout


# A window of the browser is never narrower than 500 pixels; a frame in it is.
FRAME = """<!doctype html><body style="margin:0">
<iframe src="/{page}" style="border:0;width:{width}px;height:{height}px"
onload="setTimeout(() => {{
  const root = this.contentDocument.documentElement;
  document.title = 'width ' + Math.max(root.scrollWidth, this.contentDocument.body.scrollWidth);
}}, 1500)"></iframe>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that prints nothing, and that puts a page into a frame where it is asked to."""

    def do_GET(self):
        """Serve a file, or ``/frame/400/index.html``."""
        framed = re.fullmatch(r"/frame/(\d+)/(.*)", self.path)
        if framed is None:
            return super().do_GET()
        text = FRAME.format(width=framed[1], page=framed[2], height=HEIGHT).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Print nothing."""


def page_widths(browser, site, pictures=None):
    """Width of what is on a page, as (page, width of the screen, width of the page); pictures of them all."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, page in LOOKED_AT.items():
            for width in WIDTHS:
                address = f"http://127.0.0.1:{server.server_port}/frame/{width}/{page}"
                window = f"--window-size={max(width, 500)},{HEIGHT}"
                found = re.search(
                    r"<title>width (\d+)",
                    run_browser(browser, window, "--dump-dom", address),
                )
                yield page, width, int(found[1]) if found else None
                if pictures is not None:
                    shot = f"--screenshot={pictures / f'{name}-{width}.png'}"
                    run_browser(browser, window, shot, address)
        server.shutdown()


def main():
    """Print what is wrong; exit with 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument(
        "--pictures",
        type=Path,
        help="folder for pictures of the pages that are looked at",
    )
    options = parser.parse_args()
    site = options.site.resolve()
    faults = [f"{page}: {address} leads nowhere" for page, address in broken_links(site)]
    browser = find_browser()
    if browser is None:
        print("no Chromium here: widths were not looked at")
    else:
        if options.pictures is not None:
            options.pictures.mkdir(parents=True, exist_ok=True)
        for page, width, wide in page_widths(browser, site, options.pictures):
            if wide is None or wide > width:
                faults.append(f"{page}: {wide} pixels wide on a screen of {width}")
    print(*faults, sep="\n")
    count = len(pages_of(site))
    print(f"{count} pages, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
