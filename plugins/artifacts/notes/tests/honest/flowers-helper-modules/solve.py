import utils
from models.centroid import NearestCentroid

train, test = utils.load("train"), utils.load("test")
model = NearestCentroid().fit([utils.vector(r) for r in train], [r["species"] for r in train])
utils.save([(r["id"], model.predict(utils.vector(r))) for r in test])
