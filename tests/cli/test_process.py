import os
import signal
import sys

import pytest

from entangled_kernels.cli.process import exit_at_interrupt, flush_output


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_ends_the_process_while_modules_are_imported(monkeypatch, capfd):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with exit_at_interrupt():
        signal.raise_signal(signal.SIGINT)
    assert ended == [130]
    assert (
        capfd.readouterr().err == "error: interrupted; files that were not finished were left as they were\n"
    )
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_nobody_reads(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        pipe.write("a")
        flush_output()
        pipe.write("b")
