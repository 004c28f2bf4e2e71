"""Classification: predicted labels, and predicted probabilities of classes."""
