"""The machinery of the documentation: what its pages show is checked here, and the site is built from them.

`fences` finds the blocks of a page, `blocks` says which kinds there are, `commands` knows the command lines, `run_page`
runs one page and `pages_run` all of them. `staging` copies the pages, `links` mends what they point at, `notebooks`
executes, `reference`, `docstrings`, `command_line` and `gallery` write pages, `site` calls the builder and `links_built`
reads what came out of it.
"""
