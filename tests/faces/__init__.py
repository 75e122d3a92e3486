"""Tests of the faces: what people and programs see."""
