"""Make a page, as HTML and as Markdown, of a study's folder: `python -m experiments.report DIR` writes DIR/report."""
