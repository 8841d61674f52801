"""Topics of Python's documentation: anchor words and pure documents.

Every Python carries the text of its documentation topics. A topic model of them usually consists of distributions that
one has to interpret. Here each topic is a word or a document of the collection itself.
"""

from __future__ import annotations

from pydoc_data.topics import topics

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from _figure import figure_path, new_figure, save
from gsnmf import GSNMF


def main() -> None:
    """Print the topics, and what one document is made of."""
    path = figure_path(__doc__)
    vectorizer = TfidfVectorizer(stop_words="english", min_df=3)
    X = vectorizer.fit_transform(topics.values())
    names = {"feature_names": vectorizer.get_feature_names_out(), "sample_names": list(topics)}

    model = GSNMF(10).fit(X)
    print(f"Ten topics of {X.shape[0]} documents with {X.shape[1]} words:\n")
    print(model.topics(n_words=5, **names))

    document = "while"
    print(f"\nWhat the document {document!r} is made of:\n")
    print(model.explain(list(topics).index(document), **names))

    new = "The loop is left by a break statement if the condition is false, and then the suite is executed."
    print(f"\nAnd a sentence that is not in the collection, {new!r}:\n")
    print(model.explain(vectorizer.transform([new]), **names))

    anchors, documents = model.feature_indices_.size, model.sample_indices_.size
    print(f"\nConclusion: {anchors} words and {documents} documents explain {model.quality_:.1%} of the collection.")
    if path:
        draw(model, names["feature_names"], path)


def draw(model, words, path) -> None:
    """The strongest words of each topic."""
    figure, axes = new_figure(2, 5, size=(15, 6))
    for axis, row, name in zip(axes.flat, model.components_, model.get_feature_names_out(words), strict=True):
        top = np.argsort(-row)[:6][::-1]
        axis.barh(words[top], row[top], color="tab:red" if name.startswith("anchor") else "tab:blue")
        axis.set_title(name if name.startswith("anchor") else f"document: {list(topics)[int(name.split(':')[1])]}")
        axis.set_xticks([])
    figure.suptitle("Anchor words (red) and pure documents (blue), and the words that go with them")
    save(figure, path)


if __name__ == "__main__":
    main()
