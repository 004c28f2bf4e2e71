"""Debugging: which faults does a training script have, and how are they repaired?"""
