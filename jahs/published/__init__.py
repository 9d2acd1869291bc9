"""JAHS-Bench-201's own archives, read without executing anything and converted to this project's formats.

`assembled_surrogates.tar` becomes releases, `metric_data.tar` becomes folders of runs with a report of everything odd.
"""
