"""Benchmarks: our stores beside the raw client of the same service, and beside their peers.

`python -m benchmarks` measures every backend that is found in `benchmarks.backends`. All contenders
take turns in one process, so what counts is their ratio to each other, not the speed of the machine.
"""
