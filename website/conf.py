"""Sphinx's settings for the website; build_site.py puts this file among the pages."""

project = "Attention Kit"
author = "The Attention Kit authors"
html_title = project
extensions = [
    "myst_nb",
    "sphinx-mathjax-offline",
]  # formulas are set without another server
html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 6  # so that links to headings are checked
nb_execution_mode = "off"  # as students get them: nothing has run
nb_merge_streams = True
