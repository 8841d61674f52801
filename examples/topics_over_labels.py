"""
Topics over labels
==================

The docstrings of the standard library, by module: which topics do modules share, and which does one have to itself? The
topics are found without the labels, and compared with them afterwards.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np

from gsnmf.applications import topics

# %%
# A labelled collection that everybody has
# ----------------------------------------
# One document per public function, class or method; its label is the module.

MODULES = ("socket", "statistics", "datetime", "zipfile", "threading", "logging", "pathlib", "email.message")


def docstrings(module):
    """The documentation of everything public that a module defines itself."""
    found = {}
    for name, thing in inspect.getmembers(importlib.import_module(module), callable):
        if name.startswith("_") or getattr(thing, "__module__", None) != module:
            continue
        found[name] = inspect.getdoc(thing)
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            found |= {f"{name}.{key}": inspect.getdoc(value) for key, value in vars(thing).items() if key[0] != "_"}
    return {text: f"{module}.{name}" for name, text in found.items() if text and len(text) > 60}


collection = {text: (name, module) for module in MODULES for text, name in docstrings(module).items()}
names, labels = zip(*collection.values(), strict=True)
model = topics(list(collection), len(MODULES), labels=labels, ids=names, effort="fast", members=2)
for k, topic in enumerate(model.topics):
    print(f"{k:>2}  {topic.share:>5.1%}  {topic.kind:<8}  {', '.join(topic.words[:7])}")

# %%
# Topics and modules
# ------------------
# Each row of the picture shows how the documents of a module are spread over the topics. A dark cell in a row without
# others is a topic that a module has to itself. Topics with several dark cells are shared.

table = model.by_label()
shares = np.array([row[2:] for row in table.rows], dtype=float)
order = np.argsort(shares.argmax(axis=1), kind="stable")
figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
image = axis.imshow(shares[order], cmap="Blues", vmin=0, vmax=1, aspect="auto")
axis.set_xticks(range(shares.shape[1]), [topic.name for topic in model.topics], rotation=35, ha="right")
axis.set_yticks(range(len(order)), [f"{table.rows[i][0]} ({table.rows[i][1]})" for i in order])
figure.colorbar(image, label="share of the module's docstrings")
information, rand = model.agreement()
axis.set_title(f"mutual information with the modules {information:.2f}, adjusted Rand index {rand:.2f}")

# %%
# New texts
# ---------
# The model reads sentences that it has never seen, and says which topic they resemble.

for text in (
    "wait until the other thread has finished",
    "the header of a message, with its charset",
    "extract all members of the archive",
):
    print(f"{text!r}: {model.topics[model.predict([text])[0]].name}")
plt.show()
