"""The demo: scripted agents play the failures that the sources reported, and truegreen watches."""
