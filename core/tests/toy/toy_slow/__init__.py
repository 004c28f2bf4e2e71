"""A package that a build looks for, and that takes as long to find as the test says."""

from mleredux_plugins import pause

pause("building")
