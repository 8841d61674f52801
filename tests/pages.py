"""Names that try to be markup, and the structure of a page."""

from html.parser import HTMLParser

HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><style>body{display:none}",
    "{{ 7 * 7 }}{% raise %}",
    "\u202egnp.exe",
    "a\x00b\x1b[31m",
    "\udcff",
    "&amp; &lt;",
    "x" * 5000,
)


class Structure(HTMLParser):
    """Elements of a page, with the void ones closed; `open` is empty at the end of a well-formed page."""

    VOID = frozenset({"meta", "link", "img", "input", "br", "col"})

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.ids = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
