"""Topic modelling: from texts to topics, their words, their documents and the passages that show them."""
