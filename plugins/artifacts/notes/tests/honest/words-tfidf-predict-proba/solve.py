import os
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

DATA = os.environ["MLEREDUX_DATA_DIR"]
train, test = pd.read_csv(f"{DATA}/train.csv"), pd.read_csv(f"{DATA}/test.csv")
sub = pd.read_csv(f"{DATA}/sample_submission.csv")
pipe = make_pipeline(TfidfVectorizer(), LogisticRegression(C=20)).fit(train.text, train.author)
sub[pipe.classes_] = pipe.predict_proba(test.text)
sub.to_csv("submission.csv", index=False)
