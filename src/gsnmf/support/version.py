"""The version of the installed package, which the build takes from the tag."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("gsnmf")
except PackageNotFoundError:  # sources that were never installed
    __version__ = "0.0.0"
