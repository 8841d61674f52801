"""Reports: what a factorization found, on a page to read and share.

`gather` collects the content; `render_report` and `write_report` make the page. The latter need Jinja2, which
``pip install "gsnmf[cli]"`` installs.
"""
