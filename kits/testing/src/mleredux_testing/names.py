"""A folder name with all characters that paths may contain; users' folders contain some of them."""

ODD_NAME = """-my runs (1), o'brien "x" [a]:#$HOME@v1 %d%41 {0} ü漢\u202e; `id` & | <b> * ? \\n\n\t~ !e="""
