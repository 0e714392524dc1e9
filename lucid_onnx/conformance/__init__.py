"""Judging results by the reference: how far off a value may be, and which points no float32 can decide."""
