"""Text Normalization Challenge, English Language: written tokens turned into spoken words."""

from ...blocks.spoken_tokens import text_normalization

COMPETITION = text_normalization("text-normalization-challenge-english-language", "en")
