save(test, train)
