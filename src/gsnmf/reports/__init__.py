"""Reports: what a factorization found, on a page that people can read and send on.

`gather` collects what there is to say, `render_report` and `write_report` make the page; the latter need Jinja2, which
``pip install "gsnmf[cli]"`` brings.
"""
