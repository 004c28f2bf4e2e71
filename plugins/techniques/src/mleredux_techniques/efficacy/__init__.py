"""What a recommendation does: each technique's answer is carried out on the task's data, beside a naive and a strong one.

One module a technique; what they share is `comparison` (losses → score and uncertainty), `reference` (the two models),
`recipe` (a table → a matrix, as the columns' recipes say) and `splits`.
"""
