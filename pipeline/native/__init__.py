"""Training on one processor core by our own C code: what torch computes, up to rounding, in a third of the time.

`tape` writes a network as a list of operations, `engine.c` executes it, `build` compiles that, and `engine` holds a
network between two steps.
"""
