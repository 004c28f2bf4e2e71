import os

here = os.path.dirname(os.path.abspath(__file__))
exec(open(os.path.join(here, "lib.inc")).read())
save(rows(DATA + "/test.csv"), rows(DATA + "/train.csv"))
