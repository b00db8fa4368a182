"""Reports: one page per sweep, self-contained, and its figures for a paper.

`page` writes the page, from the sections of `sections` and the figures of `figures`; `sentences` says what each figure
shows; `colours` gives every learner its one colour; `export` turns the figures into SVG and PNG files.
"""
