"""A name of a folder with all that paths may hold: users' folders are called so, one character or another at a time."""

ODD_NAME = """-my runs (1), o'brien "x" [a]:#$HOME@v1 %d%41 {0} ü漢\u202e; `id` & | <b> * ? \\n\n\t~ !e="""
