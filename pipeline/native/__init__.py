"""Training on one processor core in our own C code: what torch computes, up to rounding, in 40 % of its CPU time.

`tape` writes a network as a list of operations, `engine.c` executes the list, `build` compiles `engine.c`, and `engine`
calls it from Python. `tests/benchmarks/bench_training_loop.py` measures the speed.
"""
