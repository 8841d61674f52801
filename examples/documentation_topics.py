"""
Topics: anchor words and pure documents
=======================================

Every Python carries the text of its own documentation topics. A topic model usually answers with distributions over
words, which one has to interpret. Here each topic *is* a word or a document of the collection.
"""

from pydoc_data.topics import topics as documentation

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from gsnmf import GSNMF

# %%
# Ten topics
# ----------
# A word is chosen if a topic has it to itself, a document if it is about one topic and nothing else.

vectorizer = TfidfVectorizer(stop_words="english", min_df=3)
X = vectorizer.fit_transform(documentation.values())
words = vectorizer.get_feature_names_out()
names = {"feature_names": words, "sample_names": list(documentation)}

model = GSNMF(10, effort="fast").fit(X)
print(f"{X.shape[0]} documents, {X.shape[1]} words; the ten topics explain {model.quality_:.1%}\n")
print(model.topics(n_words=4, **names))

# %%
# The words that go with each topic. Titles in red are anchor words; titles in blue are documents.

figure, axes = plt.subplots(2, 5, figsize=(12, 5), layout="constrained")
for axis, component, name in zip(axes.flat, model.components_, model.get_feature_names_out(words), strict=True):
    kind, _, place = name.partition(":")
    top = np.argsort(-component)[:6][::-1]
    color = "tab:red" if kind == "anchor" else "tab:blue"
    axis.barh(words[top], component[top], color=color)
    axis.set_title(place if kind == "anchor" else list(documentation)[int(place)], color=color)
    axis.set_xticks([])

# %%
# What a document is made of
# --------------------------
# ``explain`` shows the topics in a document and the words by which they are known. It works just as well for a sentence
# that is not in the collection.

print(model.explain(list(documentation).index("while"), **names))
sentence = "The loop is left by a break statement if the condition is false, and then the suite is executed."
print(f"\n{sentence}\n")
print(model.explain(vectorizer.transform([sentence]), **names))
plt.show()
