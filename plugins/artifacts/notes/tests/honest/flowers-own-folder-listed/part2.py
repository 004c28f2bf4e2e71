save(rows(DATA + "/test.csv"), rows(DATA + "/train.csv"))
