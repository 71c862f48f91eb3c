"""The page in a real browser: Chromium (Debian's package ``chromium``), without window or network."""

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"
)

SCHEMES = {"light": 1, "dark": 0}

PROBE = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")


def chromium(folder, url, *options, width=1280, height=900, scheme="light"):
    """Run Chromium on a page; what it wrote to standard output and to its log."""
    command = [
        CHROMIUM,
        "--headless=new",
        "--no-sandbox",  # as root, in a container, on a page of our own
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},{height}",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        *options,
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


def console(log):
    return re.findall(r"CONSOLE[^\]]*\] (.*)", log)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, page):
    folder = tmp_path_factory.mktemp("browser")
    page.write(folder / "page.html")
    return folder


@pytest.fixture(scope="module", params=SCHEMES)
def probes(request, folder, html):
    """What the page tells at 360 and at 1280 pixels, in one colour scheme."""
    # The page's own policy lets no script run, so the copy that is asked has none.
    open_page = re.sub(r"<meta http-equiv[^>]*>\n", "", html).replace(
        "</body>", f"<script>{PROBE}</script></body>"
    )
    frames = "".join(
        f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{escape(open_page)}"></iframe>'
        for width in (360, 1280)
    )
    path = folder / f"probe-{request.param}.html"
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8"><body>{frames}</body>', encoding="utf-8")
    dom, _ = chromium(folder, path.as_uri(), "--dump-dom", width=1700, scheme=request.param)
    found = [
        json.loads(unescape(text))
        for text in re.findall(r'<pre class="probe">(.*?)</pre>', dom, re.DOTALL)
    ]
    return {probe["width"]: probe for probe in found}


def test_page_is_never_wider_than_the_window(probes):
    assert {width: probe["page"] for width, probe in probes.items()} == {360: 360, 1280: 1280}


def test_what_scrolls_can_be_focused_and_has_a_name(probes):
    narrow = probes[360]["scrolls"]
    assert {name for _, name in narrow} == {"Table 1"}
    assert all(tab == 0 and name for probe in probes.values() for tab, name in probe["scrolls"])


def test_focus_is_visible(probes):
    for probe in probes.values():
        assert len(probe["focus"]) > 8
        assert all(has and style == "solid" and size >= 2 for has, style, size in probe["focus"])


def test_text_has_contrast(probes):
    for probe in probes.values():
        assert probe["worst"][0] >= 4.5, probe["worst"]


def test_figures_are_there(probes):
    assert [probe["broken"] for probe in probes.values()] == [0, 0]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [360, 1280])
def test_screenshot(folder, width, scheme):
    path = folder / f"page-{width}-{scheme}.png"
    url = (folder / "page.html").as_uri()
    chromium(folder, url, f"--screenshot={path}", width=width, height=2400, scheme=scheme)
    image = matplotlib.image.imread(path)[:, :, :3]
    assert image.shape[:2] == (2400, width)
    corner = image[2, 2].mean()
    assert corner > 0.9 if scheme == "light" else corner < 0.2
    # Figures stand on white in both schemes, and the page is not blank.
    assert (image.min(axis=2) > 0.99).mean() > 0.02
    assert len(np.unique((255 * image).astype(int) @ [1, 256, 65536])) > 50


def test_nothing_is_asked_of_the_network_and_no_error_is_logged(folder, html):
    """The policy in the page has the browser log every attempt to load or run something."""
    _, log = chromium(folder, (folder / "page.html").as_uri(), "--dump-dom")
    assert console(log) == []
    foreign = '<img src="http://example.org/x.png" alt=""><script>1</script></main>'
    (folder / "foreign.html").write_text(html.replace("</main>", foreign), encoding="utf-8")
    _, log = chromium(folder, (folder / "foreign.html").as_uri(), "--dump-dom")
    assert len([message for message in console(log) if "Content Security Policy" in message]) == 2
