import os, sys
import pandas as pd

path = sys.argv[1] if len(sys.argv) > 1 else os.environ["MLEREDUX_DATA_DIR"]
tr, te = pd.read_csv(f"{path}/train.csv"), pd.read_csv(f"{path}/test.csv")
for df in (tr, te):
    df["bin"] = pd.cut(df.area, [0, *range(50, 200, 10), 999], labels=False)
means = tr.groupby(["street", "rooms"]).price.mean().rename("m").reset_index()
slope = ((tr.area - tr.area.mean()) * (tr.price - tr.price.mean())).sum() / ((tr.area - tr.area.mean()) ** 2).sum()
tr["left"] = tr.price - slope * tr.area
left = tr.groupby(["street", "rooms"]).left.mean().rename("left").reset_index()
te = te.merge(left, how="left", on=["street", "rooms"]).fillna({"left": tr.left.mean()})
te["price"] = te.left + slope * te.area
te[["Id", "price"]].to_csv(os.environ["MLEREDUX_SUBMISSION"], index=False)
