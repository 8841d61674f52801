"""Texts about three subjects, each with words of its own."""

import numpy as np

SUBJECTS = {
    "garden": ["flower", "tree", "soil", "seed", "lawn", "hedge", "rose", "spade", "compost", "shed"],
    "kitchen": ["oven", "pan", "flour", "sugar", "knife", "dough", "butter", "recipe", "stove", "plate"],
    "music": ["violin", "piano", "concert", "melody", "rhythm", "chorus", "opera", "singer", "tune", "drum"],
}


def make_texts(count=60, seed=0):
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(count):
        label = list(SUBJECTS)[i % 3]
        other = list(SUBJECTS)[(i + 1 + i // 3 % 2) % 3]  # each subject meets both others
        lines = [" ".join(rng.choice(SUBJECTS[label], 5, replace=False)) for _ in range(4)]
        lines.append(" ".join(rng.choice(SUBJECTS[other], 2, replace=False)))
        texts.append(". ".join(lines).capitalize() + ".")
        labels.append(label)
    return texts, labels
