"""Pages: one document, written as Markdown and as HTML, with figures in one style."""
