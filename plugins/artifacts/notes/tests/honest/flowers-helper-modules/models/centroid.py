class NearestCentroid:
    def fit(self, X, y):
        self.centres = {}
        for label in set(y):
            rows = [x for x, one in zip(X, y) if one == label]
            self.centres[label] = [sum(column) / len(rows) for column in zip(*rows)]
        return self

    def predict(self, x):
        return min(self.centres, key=lambda k: sum((a - b) ** 2 for a, b in zip(x, self.centres[k])))
