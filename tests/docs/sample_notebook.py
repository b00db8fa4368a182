# A sample of a notebook, for the tests of its renderer.

# %% [markdown]
# # A sample
#
# Text with `code` and a [link](https://example.org).

# %%
import plotly.graph_objects as go

x = 20


class Table:
    def _repr_html_(self):
        return "<table><tr><td>a</td></tr>\n\n<tr><td>b</td></tr></table>"

    def __repr__(self):
        return "Table()"


print("printed", x)
x + 1

# %%
display(Table())  # noqa: F821 - a notebook knows it
print("after the table")
go.Figure(go.Scatter(x=[1, 2], y=[1, 4]), {"title": "A line"})

# %%
x += 1
