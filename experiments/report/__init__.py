"""Turns a folder of trial logs into one page for people, and the same as Markdown with pictures.

`python -m experiments.report DIR` writes DIR/report. Analysis computes (`experiments.analysis`), chapters choose what
to show, figures draw, and `html` and `markdown` write the same document twice.
"""
