"""Which of given predictions to blend: the technique `ensembling`."""
