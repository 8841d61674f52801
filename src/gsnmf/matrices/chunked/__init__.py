"""Dask arrays: what their chunks must be, passes over them, products, and arrays as lazy as they are.

Imported only where a Dask array is, since nothing else needs Dask.
"""
