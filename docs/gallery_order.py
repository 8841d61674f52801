"""The order of the gallery: what catches the eye first, questions about the model last."""

ORDER = (
    "in_one_picture",
    "documentation_topics",
    "topics_over_labels",
    "spectral_image",
    "indian_pines",
    "pure_bands",
    "marker_genes",
    "faces",
    "key_pixels_and_digits",
    "piano_recording",
    "mutational_signatures",
    "feature_selection",
    "missing_ratings",
    "missing_pixels",
    "choosing_the_rank",
    "members",
    "inside_the_search",
    "geometry",
    "certificates",
    "large_data_with_dask",
)


def place(file_name: str) -> int:
    """Position of an example; an example without one stops the build."""
    return ORDER.index(file_name.removesuffix(".py"))
