import os
import signal
import sys
import threading

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


def test_other_plans_for_interrupts_stay(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with exit_at_interrupt():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_threads_set_no_signals():
    seen = []

    def work():
        with exit_at_interrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_nobody_reads(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        pipe.write("a")
        flush_output()
        pipe.write("b")
