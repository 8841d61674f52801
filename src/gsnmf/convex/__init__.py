"""The convex model of generalized separable NMF, and its exact counterpart."""
