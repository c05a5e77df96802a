"""One run, from the options of a command to the answer: ``flow`` has it on one screen."""
