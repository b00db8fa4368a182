"""Reports: one page per sweep or comparison, self-contained, and its figures for a paper.

`page` and `board` fill the templates with tables and figures; a figure of `figures` declares all that is said of it;
`plots` gives every learner its one colour; `export` turns figures into PDF, SVG and PNG files.
"""
