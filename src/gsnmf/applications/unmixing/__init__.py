"""Unmixing of spectral images: endmembers, abundances, maps.

`gsnmf.applications.unmix` runs the steps in order: `scene_files` and `cube` open the image, `scene` finds the pixels
that are used, `endmember_extraction` chooses endmembers by one of its methods, `abundances` fits every pixel.
"""
