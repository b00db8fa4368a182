"""The machinery of the documentation: what its pages show is checked here, and the site is built from them.

Checks: `fences` finds the blocks of a page, `blocks` says which kinds there are, `commands` knows the command lines,
`run_page` runs one page and `pages_run` all of them.

Site: `staging` copies the pages and mends their links, `notebooks` executes, `reference` (with `api_pages` and
`docstrings`), `command_line` and `gallery` write pages, `site` calls the builder, `built_links` reads what came out.
"""
