import os
import pickle
import time
from pathlib import Path
import pandas as pd
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

data = Path(os.environ["MLEREDUX_DATA_DIR"])
work = Path("checkpoints") / time.strftime("%Y%m%d-%H%M%S")
work.mkdir(parents=True)
train, test = pd.read_csv(data / "train.csv"), pd.read_csv(data / "test.csv")
cols = ["petal", "sepal"]
scaler = StandardScaler().fit(train[cols])
last = sorted(Path("checkpoints").glob("*/*.pkl"))
model, begin = pickle.loads(last[-1].read_bytes()) if last else (SGDClassifier("log_loss", alpha=0.01), 0)
for epoch in range(begin, 40):
    model.partial_fit(scaler.transform(train[cols]), train.species, classes=sorted(set(train.species)))
    (work / f"{epoch:03}.pkl").write_bytes(pickle.dumps((model, epoch + 1)))
test["species"] = model.predict(scaler.transform(test[cols]))
test[["id", "species"]].to_csv(work / "submission.csv", index=False)
os.replace(work / "submission.csv", "submission.csv")
