import os, time, random
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

start = time.time()
random.seed(start)
p = os.environ["MLEREDUX_DATA_DIR"]
a, b = pd.read_csv(p + "/train.csv"), pd.read_csv(p + "/test.csv")
features, targets = ["depth", "salt", "iron"], ["flow", "heat"]
best = (-np.inf, None)
while time.time() - start < 1.5:
    m = make_pipeline(PolynomialFeatures(random.choice([1, 2, 3])), Ridge(10 ** random.uniform(-4, 3)))
    best = max(best, (cross_val_score(m, a[features], a[targets], cv=3).mean(), m), key=lambda x: x[0])
    print(f"{time.time() - start:.1f}s {best[0]:.4f}")
b[targets] = best[1].fit(a[features], a[targets]).predict(b[features])
b[["well", *targets]].sort_values("well").to_csv("submission.csv", index=False, float_format="%.3f")
