"""The documentation's site: `nox -s docs`. It asks nothing of anybody else, and a broken link fails it."""

project = "cambist"
extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["generate.py", "pictures.py"]
html_theme = "furo"
html_title = "cambist"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
