"""Sphinx: how the pages of docs/ become docs/_build/html; `make docs` runs it."""

import sys
from pathlib import Path

import matplotlib

from isingkit import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

matplotlib.use("agg")

project = "isingkit"
author = "The isingkit developers"
copyright = f"{author}; BSD-3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "command_help",  # these four are in _ext
    "mathml",
    "offline",
    "plain_docstrings",
]
exclude_patterns = ["_build", "_ext", "_templates", "guides"]  # guides are what gallery is made of
templates_path = ["_templates"]
default_role = "code"  # `name` in docstrings
nitpicky = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # plain_docstrings puts them into the lists of arguments
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_attr_annotations = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "guides",
    "gallery_dirs": "gallery",
    "filename_pattern": ".*",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", "strict_guides.hold"),
    "reset_modules_order": "both",
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # that page would load scripts from elsewhere
    "min_reported_time": 1e9,  # how long a guide takes depends on the machine
    "capture_repr": ("_repr_html_",),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
    "show_signature": False,
    "copyfile_regex": "",
    "backreferences_dir": None,
}

html_theme = "furo"
html_title = f"isingkit {release}"
html_static_path = ["_static"]
html_css_files = ["isingkit.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sourcelink = False
