"""Passages: the sentences of documents in which the words of a topic occur."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

LONGEST = 320
"""Characters of a passage; a longer sentence is cut around the words."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+|\n\s*\n|(?<=[。！？])")
_FEWEST_LETTERS = 0.8
_WORD = r"(?u)\b\w\w+\b"


@dataclass(frozen=True)
class Passage:
    """A sentence of a document in which words of a topic occur.

    Attributes
    ----------
    document : int
        Position of the document.
    text : str
        The sentence, or the part of it around the words.
    spans : tuple of pairs (start, end)
        Where the words stand in ``text``.
    """

    document: int
    text: str
    spans: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return self.text


def find_passage(
    document: int,
    text: str,
    weights: Mapping[str, float],
    *,
    pattern: str = _WORD,
    fold: Callable[[str], str] = str.lower,
) -> Passage | None:
    """The sentence of a text with the largest sum of weights of different words; None if it has none of them.

    Sentences of letters and spaces are preferred to headings, tables and code.

    Parameters
    ----------
    document : int
        Position of the document.
    text : str
    weights : mapping of str to float
        The words of a topic. An expression of several words counts where all of them stand one after the other.
    pattern : str
        Regular expression of a word.
    fold : callable
        What makes a word of the text comparable: lower case.

    Examples
    --------
    >>> find_passage(0, "It rained. The cat saw a dog! Dogs ran.", {"cat": 1.0, "dog": 0.5}).text
    'The cat saw a dog!'
    """
    best, best_score, best_spans = "", 0.0, ()  # type: tuple[str, float, tuple[tuple[int, int], ...]]
    word = re.compile(pattern)
    longest = max((len(term.split(" ")) for term in weights), default=1)
    for sentence in sentences(text):
        found = _occurrences(sentence, weights, word, fold, longest)
        score = _readable(sentence) * sum(weights[term] for term in {term for term, _ in found})
        if score > best_score:
            best, best_score, best_spans = sentence, score, tuple(span for _, span in found)
    if not best:
        return None
    shown, spans = _cut(best, best_spans)
    return Passage(document, shown, spans)


def sentences(text: str) -> list[str]:
    """The sentences of a text, with single spaces between words.

    Examples
    --------
    >>> sentences("One.  Two\\nlines? Three")
    ['One.', 'Two lines?', 'Three']
    """
    parts = (" ".join(part.split()) for part in _SENTENCE_END.split(text) if part)
    return [part for part in parts if part]


def _readable(sentence: str) -> float:
    """How much a sentence is worth: less if it is rather a heading, a table or code."""
    letters = sum(character.isalpha() or character == " " for character in sentence)
    return 1.0 if letters >= _FEWEST_LETTERS * len(sentence) else 0.1


def _occurrences(
    sentence: str, weights: Mapping[str, float], word: re.Pattern[str], fold: Callable[[str], str], longest: int
) -> list[tuple[str, tuple[int, int]]]:
    words = [(fold(match.group()), match.span()) for match in word.finditer(sentence)]
    found: list[tuple[str, tuple[int, int]]] = []
    for at in range(len(words)):
        for length in range(longest, 0, -1):
            term = " ".join(text for text, _ in words[at : at + length])
            if at + length <= len(words) and term in weights:
                found.append((term, (words[at][1][0], words[at + length - 1][1][1])))
                break
    return found


def _cut(sentence: str, spans: Sequence[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """At most `LONGEST` characters of a sentence, with the spans that lie in them."""
    disjoint = _without_overlaps(spans)
    if len(sentence) <= LONGEST:
        return sentence, disjoint
    start = max(0, min(disjoint[0][0] - 40, len(sentence) - LONGEST))
    start = 0 if start == 0 else sentence.rfind(" ", 0, start + 1) + 1
    stop = min(len(sentence), start + LONGEST)
    before, after = "…" if start else "", "…" if stop < len(sentence) else ""
    shift = len(before) - start
    kept = tuple((a + shift, b + shift) for a, b in disjoint if a >= start and b <= stop)
    return before + sentence[start:stop] + after, kept


def _without_overlaps(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    disjoint: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not disjoint or start >= disjoint[-1][1]:
            disjoint.append((start, end))
    return tuple(disjoint)
