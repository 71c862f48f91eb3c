"""Published files served from this machine, and the real tables where they are."""

import hashlib
import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from entangled_kernels.datasets import published
from entangled_kernels.datasets.files import DataFile

DATA = Path(
    os.environ.get("ENTANGLED_KERNELS_DATA") or Path(__file__).parents[3] / "shared" / "data"
)
CONTENT = b"No,a,b,c,d,e,f,g,y 1,y 2\n1,1,2,3,4,5,6,7,8,9\n2,1,0,3,4,5,6,7,8,1\n"


@pytest.fixture
def data_with():
    """The folder of the real tables, if it has the one named; otherwise the test is skipped."""

    def find(folder):
        if not (DATA / folder).is_dir():
            pytest.skip(
                f"the table is not in {DATA}; set ENTANGLED_KERNELS_DATA to a folder with {folder}/"
            )
        return DATA

    return find


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A published file of two rows in the place of the concrete table, served from this machine."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "toy.data").write_bytes(CONTENT)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/toy.data"
        file = DataFile(
            "concrete_slump", "slump_test.data", hashlib.sha256(CONTENT).hexdigest(), url
        )
        monkeypatch.setitem(published.FILES, "concrete", file)
        yield file
        server.shutdown()
        serving.join()
